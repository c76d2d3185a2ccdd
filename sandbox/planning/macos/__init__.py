"""The macOS plan: the rules of a profile, and its text. Pure."""
