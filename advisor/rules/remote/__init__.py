"""Rules of storage that another machine serves."""
