"""Profiles: named, declarative sets of wanted values, read from TOML."""
