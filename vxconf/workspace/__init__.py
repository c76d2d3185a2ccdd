"""The workspace, its projects and its tasks, read from the file system."""
