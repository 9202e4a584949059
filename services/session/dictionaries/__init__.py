"""Dictionaries as a session sees them: declared, asked, refreshed, counted."""
