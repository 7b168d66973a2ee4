"""The lab host: a real kernel to be judged by. See README.md in this directory."""
