"""Names of columns that stand outside of a query: ``WITH x(a, b) AS ..``, ``(SELECT ..) AS x(a, b)``, a view's own."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from changelog.errors import SqlError
from sql.bind.scope import place_of

_NAMES = "column names"
"""The key in the metadata of a query under which they stand."""


def columns_of_alias(named: exp.Expr) -> list[str]:
    """The names in brackets after an alias."""
    alias = named.args.get("alias")
    return [column.name for column in alias.args.get("columns") or ()] if isinstance(alias, exp.TableAlias) else []


def renamed(query: exp.Query, named: exp.Expr) -> exp.Query:
    """``query`` with the names that the alias of ``named`` gives its columns."""
    return with_names(query, columns_of_alias(named))


def with_names(query: exp.Query, names: Sequence[str]) -> exp.Query:
    if not names:
        return query
    made = query.copy()
    made.meta[_NAMES] = tuple(names)
    return made


def named_as(query: exp.Query, names: Sequence[str]) -> list[str]:
    """The names of the columns of ``query``: its own, or those given from outside, the first so many of them."""
    return chosen(query.meta.get(_NAMES, ()), names, place_of(query, "FROM"))


def chosen(given: Sequence[str], names: Sequence[str], place: str) -> list[str]:
    if len(given) > len(names):
        raise SqlError(
            f"{len(given)} names are given to {len(names)} columns: {', '.join(given)}",
            where=place,
            fix=f"a name for each of {', '.join(names)}",
        )
    return [*given, *names[len(given) :]]
