"""The warden's side of a task's proxy, and the process in which the proxy runs."""
