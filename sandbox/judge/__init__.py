"""From what a task did to what counts: violations, hints, and the lines that would allow it. Pure."""
