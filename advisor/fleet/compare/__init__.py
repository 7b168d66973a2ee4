"""Which host of many differs from the others, in what, and what to do."""
