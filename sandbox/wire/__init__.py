"""The engine's values as JSON, for this machine and for others. Pure."""
