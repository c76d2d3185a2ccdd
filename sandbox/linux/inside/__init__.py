"""What runs inside the namespaces of a task before its command does."""
