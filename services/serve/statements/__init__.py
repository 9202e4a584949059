"""Statements of a request: read, run on a thread within bounds, and given back as lines or Arrow."""
