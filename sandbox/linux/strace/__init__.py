"""strace as an observer: the process, and a parser of what it writes."""
