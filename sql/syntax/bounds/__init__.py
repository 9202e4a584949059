"""How large the text of a statement may be."""
