"""What a program starts: a session, an executor, a server, a wrapped command, a doctor."""
