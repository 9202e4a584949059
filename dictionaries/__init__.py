"""Dictionaries: rows of another database, looked up by key."""
