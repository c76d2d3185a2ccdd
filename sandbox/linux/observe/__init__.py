"""The observers: each call of a task that is seen, read, answered and reported."""
