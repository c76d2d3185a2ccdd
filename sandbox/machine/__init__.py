"""The facts of this machine, and what it can do."""
