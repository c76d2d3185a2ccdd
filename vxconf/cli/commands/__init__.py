"""The commands, one file each, with a function `main` from the arguments to an exit status."""
