"""The feed of a dictionary: the changes at its source."""
