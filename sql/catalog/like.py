"""SQL's LIKE, as SHOW .. LIKE takes it."""

from __future__ import annotations

from fnmatch import fnmatchcase


def matches(name: str, pattern: str) -> bool:
    """``%`` stands for any characters, ``_`` for one; letter case does not count."""
    escaped = "".join(f"[{c}]" if c in "*?[" else c for c in pattern)
    return fnmatchcase(name.casefold(), escaped.casefold().replace("%", "*").replace("_", "?"))
