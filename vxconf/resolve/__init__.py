"""From valid data to the frozen config of a task. Pure."""
