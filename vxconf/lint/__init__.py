"""Warnings about a block that can be granted and probably does not do what was meant. Pure."""
