"""Rules of links and of what runs over them."""
