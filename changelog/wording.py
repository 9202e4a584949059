"""Numbers and kinds of things in messages."""

from __future__ import annotations


def counted(count: int, noun: str, plural: str = "") -> str:
    """``1 row``, ``1,200 rows``."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def articled(noun: str) -> str:
    """``a table``, ``an index``."""
    return f"{'an' if noun[0].lower() in 'aeio' else 'a'} {noun}"
