"""The vocabulary of grants: paths, patterns, hosts, sockets, and the facts of a machine. Pure."""
