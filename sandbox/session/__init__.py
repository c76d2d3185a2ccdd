"""The engine as a program starts it: a session, an executor, a server, a wrapped command, a doctor."""
