"""Sources: one file for each kind of database. ``dictionaries.open`` picks the one of a definition."""
