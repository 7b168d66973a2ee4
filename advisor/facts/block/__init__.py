"""Block devices, what is made of them, and what lies on them."""
