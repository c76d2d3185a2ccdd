"""What a task reaches beyond its files: host names, loopback ports, sockets."""
