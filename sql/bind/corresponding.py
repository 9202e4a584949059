"""CORRESPONDING of a set operation: the columns that all parts have, found by their names.

SELECT id, name, v FROM a UNION ALL CORRESPONDING SELECT v, id FROM b              id, v
SELECT * FROM a UNION CORRESPONDING BY (v, id) SELECT * FROM b                     v, id
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from dovetail.changelog.errors import SqlError, UnknownName, Unsupported
from dovetail.changelog.suggest import suggestion
from dovetail.sql.bind.bound import Bound


def names_written(combined: exp.Expr) -> tuple[bool, str, tuple[str, ...]]:
    """Whether the columns go by their names, and by which."""
    on = tuple(column.name for column in combined.args.get("on") or ())
    return bool(combined.args.get("by_name")), combined.args.get("kind") or "", on


def corresponding(combined: exp.SetOperation, parts: Sequence[Bound], word: str, place: str) -> Sequence[Bound]:
    """``parts`` with the columns that all have, in the order of the first, or in that of BY; where nothing says so all
    of their columns. Raises SqlError where there is none.
    """
    by_name, kind, wanted = names_written(combined)
    if not by_name:
        return parts
    if kind != "INNER":
        raise Unsupported(
            f"{word} BY NAME, which fills up the columns that a part does not have, is not supported",
            where=place,
            fix=f"{word} CORRESPONDING for the columns that all have; or select NULL for those that are missing",
        )
    named = [dict(part.columns) for part in parts]
    for name in wanted:
        for number, columns in enumerate(named, start=1):
            if name not in columns:
                fix = suggestion(name, columns)
                raise UnknownName(f'SELECT {number} of the {word} has no column "{name}"', where=place, fix=fix)
    names = wanted or [name for name in named[0] if all(name in columns for columns in named)]
    if not names:
        raise SqlError(
            f"no column of the {word} CORRESPONDING is in all of its parts: the first has {', '.join(named[0])}",
            where=place,
            fix=f"name columns of one meaning alike, SELECT x AS {next(iter(named[0]))}; or leave CORRESPONDING out",
        )
    return [
        replace(part, columns=tuple((name, columns[name]) for name in names))
        for part, columns in zip(parts, named, strict=True)
    ]
