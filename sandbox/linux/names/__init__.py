"""Granted names where no mask serves them: the warden makes, moves and removes them, and mounts show them."""
