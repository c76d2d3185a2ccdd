"""The sockets of a task's proxy: the loop, connections, dials, relays."""
