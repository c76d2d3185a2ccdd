"""The mask: the file system in which only the way to the grants exists."""
