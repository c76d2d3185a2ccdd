"""What strace writes, read as it comes: bytes in, accesses out. Pure."""
