"""The plan of a run on macOS: the rules of a profile, and its text. Pure."""
