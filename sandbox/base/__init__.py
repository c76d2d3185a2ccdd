"""The vocabulary of grants: paths, patterns, hosts, sockets, and what is known of a machine. Pure."""
