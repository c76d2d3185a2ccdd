"""The workspace: its root, its projects and tasks, and the check of their files."""
