"""The SQL front: text to statements, statements to plans, names in a catalog."""
