"""The nearest name to one that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Guess:
    """``word`` may be meant by what stands from ``start`` to ``end``; ``offer`` asks the user."""

    start: int
    end: int
    word: str
    offer: str


LIKE_ENOUGH = 0.6
"""The least similarity (difflib's ratio) at which a name is worth offering."""


MOST = 5
"""How many names are worth a trial."""


def ranked(name: str, known: Iterable[str]) -> list[str]:
    """The names of ``known`` that are like ``name``, letter case aside, the most like first."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    return [by_folded[found] for found in difflib.get_close_matches(name.casefold(), by_folded, MOST, LIKE_ENOUGH)]


def likeness(one: str, other: str) -> float:
    """From 0 to 1, letter case aside; 0 where the lengths alone say that it is not enough."""
    if 2 * min(len(one), len(other)) < LIKE_ENOUGH * (len(one) + len(other)):
        return 0
    return difflib.SequenceMatcher(None, other.casefold(), one.casefold()).ratio()


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The name of ``known`` most like ``name``; None where none is like it."""
    return next(iter(ranked(name, known)), None)


def choice(value: str, choices: Iterable[str]) -> str:
    """``did you mean "x"? one of: x, y``, in the order of ``choices``; without the question where none is like it."""
    listed = list(choices)
    best = nearest(value, listed)
    question = "" if best is None else f'did you mean "{best}"? '
    return f"{question}one of: {', '.join(listed)}"


def suggestion(name: str, known: Iterable[str], listing: str = "", nothing: str = "there are none yet") -> str:
    """``did you mean "x"?``, else what there is: ``listing`` names the statement or page that lists it, ``nothing``
    what is said where there is none.
    """
    candidates = sorted(known)
    best = nearest(name, candidates)
    if best is not None:
        return f'did you mean "{best}"?'
    if listing:
        return listing
    return f"there are: {', '.join(candidates)}" if candidates else nothing
