"""The executor's end of a task's terminal and output."""
