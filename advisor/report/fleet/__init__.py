"""Pages of several hosts."""
