"""Which rows meet, and what becomes of those that meet none."""
