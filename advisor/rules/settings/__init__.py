"""Rules of kernel parameters and of the command line."""
