"""How the rows of a dictionary are kept: one file per layout."""
