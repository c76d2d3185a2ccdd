"""A thread of the task that stands still inside a call: its memory, its descriptors, the paths it names."""
