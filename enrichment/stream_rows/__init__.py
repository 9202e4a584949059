"""The current rows of a stream in a local SQLite file."""
