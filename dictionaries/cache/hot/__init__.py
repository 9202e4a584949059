"""The hot tier: entries in the memory of the process."""
