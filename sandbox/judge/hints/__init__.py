"""Notes beside a failed run, one file for each subject. Pure."""
