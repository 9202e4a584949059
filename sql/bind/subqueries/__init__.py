"""Subqueries: what a condition or a value asks of other rows."""
