"""The machine, its memory, its services, and what it is seen to serve."""
