"""Stateless steps on rows: static joins, windows, array joins, versions."""
