"""Hosts that have nothing of ours, captured by one script and read as an archive."""
