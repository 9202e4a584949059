"""Names of output columns."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, count

DELTA_COLUMN = "_tp_delta"
"""What the signed count of a change is called in SQL and in records."""


def output_names(columns: Iterable[tuple[str, str]]) -> list[str]:
    """Names for pairs (name, table): the second of two equal ones is ``table.name``, further ones are numbered.

    Names that differ in letter case alone count as equal: DuckDB does not tell them apart.
    """
    taken: dict[str, str] = {}
    for name, table in columns:
        chosen = name
        if chosen.casefold() in taken and table:
            chosen = f"{table}.{name}"
        number = 1
        while chosen.casefold() in taken:
            chosen, number = f"{name}_{number}", number + 1
        taken[chosen.casefold()] = chosen
    return list(taken.values())


def unused(name: str, taken: Iterable[str], mark: str = "#") -> str:
    """``name``, or the first of ``name#2``, ``name#3`` .. that is none of ``taken``, letter case apart."""
    known = {one.casefold() for one in taken}
    numbered = (f"{name}{mark}{number}" for number in count(2))
    return next(one for one in chain([name], numbered) if one.casefold() not in known)
