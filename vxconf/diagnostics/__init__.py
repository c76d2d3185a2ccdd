"""What is said about a file, and how it is printed."""
