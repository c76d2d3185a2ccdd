"""Runs of tasks: the order, the runner, the report and the fix."""
