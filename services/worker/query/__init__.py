"""The process of one lookup query."""
