"""A task file with entries added: text in, text out. Pure."""
