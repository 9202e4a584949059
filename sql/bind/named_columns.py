"""Names that columns take from outside: ``WITH x(a, b) AS ..``, ``FROM s AS x(a, b)``, a view's own.

They are those of the first columns; the others keep their names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from sqlglot import exp

from dovetail.changelog.errors import SqlError
from dovetail.changelog.wording import counted
from dovetail.sql.bind.scope import place_of

_NAMES = "column names"
"""The key in the metadata of a query under which they stand."""

Value = TypeVar("Value")


def columns_of_alias(named: exp.Expr) -> list[str]:
    """The names in brackets after an alias."""
    alias = named.args.get("alias")
    return [column.name for column in alias.args.get("columns") or ()] if isinstance(alias, exp.TableAlias) else []


def under_alias(named: exp.Expr, columns: Sequence[tuple[str, Value]]) -> list[tuple[str, Value]]:
    """The columns of a CTE or an item of FROM by the names that its alias gives them."""
    given = columns_of_alias(named)
    return _named(given, columns, place_of(named.args["alias"], "FROM")) if given else list(columns)


def with_names(query: exp.Query, names: Sequence[str]) -> exp.Query:
    if not names:
        return query
    made = query.copy()
    made.meta[_NAMES] = tuple(names)
    return made


def named_as(query: exp.Query, columns: Sequence[tuple[str, Value]]) -> list[tuple[str, Value]]:
    """The columns of ``query`` by their own names, or by those that ``with_names`` gave them."""
    return _named(query.meta.get(_NAMES, ()), columns, place_of(query, "FROM"))


def _named(given: Sequence[str], columns: Sequence[tuple[str, Value]], place: str) -> list[tuple[str, Value]]:
    own = [name for name, _ in columns]
    if len(given) > len(own):
        raise SqlError(
            f"{counted(len(given), 'name')} for {counted(len(own), 'column')}: {', '.join(given)}",
            where=place,
            fix=f"a name for each of {', '.join(own)}",
        )
    names = [*given, *own[len(given) :]]
    twice = [name for name, count in Counter(name.casefold() for name in names).items() if count > 1]
    if given and twice:
        raise SqlError(
            f'"{twice[0]}" is the name of two columns: {", ".join(names)}',
            where=place,
            fix=f"a name of its own for each of {', '.join(own)}",
        )
    return [(name, value) for name, (_, value) in zip(names, columns, strict=True)]
