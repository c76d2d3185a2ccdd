"""What a block becomes on each platform, and why a path or a host is reached. Pure."""
