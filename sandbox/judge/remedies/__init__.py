"""Remedies: the one for each denial, and the grants that are never suggested."""
