"""From misses to entries: the source is asked, its answers are stored, its failures dealt with."""
