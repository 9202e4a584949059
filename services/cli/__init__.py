"""The command line: ``dovetail``."""
