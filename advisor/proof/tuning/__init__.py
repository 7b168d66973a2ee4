"""The search for the value that measures best."""
