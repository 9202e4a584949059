"""Lookup joins on a batch: distinct keys, asked once, their rows spread over the left rows."""
