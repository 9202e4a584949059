"""The nearest name to one that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LIKE_ENOUGH = 0.6
"""The least similarity (difflib's ratio) at which a name is worth offering."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The name of ``known`` most like ``name``, letter case aside; None where none is like it."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    found = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=LIKE_ENOUGH)
    return by_folded[found[0]] if found else None


def suggestion(name: str, known: Iterable[str], listing: str = "") -> str:
    """``did you mean "x"?``, else what there is: ``listing`` names the statement or page that lists it."""
    candidates = sorted(known)
    best = nearest(name, candidates)
    if best is not None:
        return f'did you mean "{best}"?'
    if listing:
        return listing
    return f"there are: {', '.join(candidates)}" if candidates else "there are none yet"
