"""The rules by which a task's proxy refuses and allows. Pure."""
