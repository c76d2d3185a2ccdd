"""The socket calls of a task, which the warden makes for it."""
