"""Warnings about blocks that can be granted and probably do not do what their author meant. Pure."""
