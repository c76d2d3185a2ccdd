"""Files and directories that a run makes on the host and takes away again."""
