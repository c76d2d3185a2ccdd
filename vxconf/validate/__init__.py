"""The validation of a document by itself: the schema, then the rules across fields. Pure."""
