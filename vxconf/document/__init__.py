"""From the bytes of a task file to data, each key with its place. Pure but for `read_file`."""
