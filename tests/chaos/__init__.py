"""Kills of every kind under load, healed with no hand: ``python -m tests.chaos --minutes n --seed s``."""
