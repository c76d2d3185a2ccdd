"""Explanations of a block: its grants on each platform, and the reason why a path or a host is reached. Pure."""
