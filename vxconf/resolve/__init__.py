"""The steps from a task file's valid data to the frozen config of each block, judged against the machine. Pure."""
