"""The engine on macOS: one run under `sandbox-exec`, with the log as its observer."""
