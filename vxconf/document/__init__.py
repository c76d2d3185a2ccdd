"""Task files as documents: bytes to data, each key and value with its place. Pure but for `read_file`."""
