"""The observers: each call of a task that is seen is read, answered and reported."""
