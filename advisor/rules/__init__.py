"""Facts → findings: pure functions, each with its citation; one file per topic."""
