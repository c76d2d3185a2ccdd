"""What a run makes on the host and takes away again."""
