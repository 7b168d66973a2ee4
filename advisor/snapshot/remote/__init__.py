"""Hosts without advisor, captured by one script and read as an archive."""
