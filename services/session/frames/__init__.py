"""Rows that come in columns, from a program: made those of a stream, with no value changed."""
