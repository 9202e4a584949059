"""Checkpoints that releases have written, and what each release has to go on with."""
