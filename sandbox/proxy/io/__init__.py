"""The sockets of a task's proxy: its event loop, connections, dialler and relays."""
