"""Stateless steps on rows: static joins, windows, versions."""
