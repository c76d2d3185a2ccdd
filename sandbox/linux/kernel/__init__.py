"""The formats and calls of the Linux kernel that Python has no name for."""
