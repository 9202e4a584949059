"""Queries over rows that are all there: read once, answered by DuckDB."""
