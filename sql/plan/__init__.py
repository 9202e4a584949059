"""The logical plan: its nodes, what is true of them, their text."""
