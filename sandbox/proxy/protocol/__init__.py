"""What bytes mean to a task's proxy: code that holds no socket. Pure."""
