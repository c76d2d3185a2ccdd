"""The warden's side of a task's proxy, and the process it runs in."""
