"""The operators: one file for each kind of join."""
