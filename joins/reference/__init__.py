"""Every operator once more, in plain loops over rows: what the fast ones are tested against.

A reference keeps the full content of its inputs, computes the whole result after each batch, and gives the difference
to the one before. A row is a tuple of values; ``None`` is NULL.
"""
