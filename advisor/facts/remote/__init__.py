"""Storage that another machine serves."""
