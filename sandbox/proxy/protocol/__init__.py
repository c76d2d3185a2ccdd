"""The protocols of a task's proxy, as code that is fed bytes and holds no socket. Pure."""
