"""From a config and facts to a request: what one run may touch, or why it cannot be granted. Pure."""
