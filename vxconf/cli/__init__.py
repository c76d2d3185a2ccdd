"""The command line: one table of arguments, and one file for each command."""
