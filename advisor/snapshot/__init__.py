"""A host captured into an archive, and an archive read as a host."""
