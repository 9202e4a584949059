"""Processes: where they listen, how they start."""
