"""Links, what they stand on, and the files that set them."""
