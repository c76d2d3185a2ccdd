"""The JSON Schema of a task file, and what is generated from it."""
