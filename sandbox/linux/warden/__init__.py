"""The processes outside the walls: the supervisor of a session, and a warden for each task."""
