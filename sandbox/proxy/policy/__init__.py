"""What a task's proxy lets through. Pure."""
