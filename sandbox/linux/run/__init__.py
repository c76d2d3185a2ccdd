"""One `Session.run` on Linux, from a request to a result."""
