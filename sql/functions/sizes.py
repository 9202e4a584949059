"""How large a value may become that a number in the statement asks for.

The engine makes such a value in one step, within which it does not hear that nobody waits for it any more. Beyond the
bound there is none: NULL. What is too large is kept out of the arguments: a CASE around the call would not help, as of
constants the engine computes each branch.
"""

from __future__ import annotations

LARGEST = 1_000_000
"""Characters of a text, or elements of an array."""
COMPARED = 1_024
"""Characters of each of two texts of which every one is held against every other."""


def sized(number: str) -> str:
    """``number``, where it is no more than ``LARGEST``."""
    return f"CASE WHEN {number} <= {LARGEST} THEN {number} END"


def compared(text: str) -> str:
    """``text``, where it is no longer than ``COMPARED``."""
    return f"CASE WHEN length({text}) <= {COMPARED} THEN {text} END"
