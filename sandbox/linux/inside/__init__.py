"""Steps inside the namespaces of a task before its command runs, and processes that stay there."""
