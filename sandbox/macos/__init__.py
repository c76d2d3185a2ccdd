"""The engine on macOS: profile text, the log, and the runner."""
