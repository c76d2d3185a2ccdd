"""The editing of task files: entries are added to lists, and every other line stays as it was. Pure."""
