"""Lookup joins as hosts call them: batches of records in, messages out."""
