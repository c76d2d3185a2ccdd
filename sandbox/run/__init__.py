"""What the runs of every platform share."""
