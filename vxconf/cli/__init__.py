"""The command line: one table of arguments, one file for each command."""
