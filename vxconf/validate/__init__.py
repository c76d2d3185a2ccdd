"""What is wrong with a document by itself: the schema, then the rules across fields. Pure."""
