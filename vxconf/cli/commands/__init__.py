"""The commands, one file each: a function from its arguments to an exit status."""
