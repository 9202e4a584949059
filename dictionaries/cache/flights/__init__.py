"""Of several that miss the same key at once, one asks and the others wait."""
