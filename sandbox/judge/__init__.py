"""From the accesses of a task to its violations and hints, and the lines that would allow them. Pure."""
