"""Oracles: the databases that the dialects come from, asked what an expression means."""
