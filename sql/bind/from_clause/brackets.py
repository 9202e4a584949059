"""Brackets in FROM around joins rather than around a query: ``(a JOIN b ON ..)``, ``((a JOIN b ON ..)) AS x``."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dovetail.changelog.errors import Unsupported
from dovetail.sql.bind.from_clause.array_join import clause_of, is_array_join, spelled
from dovetail.sql.bind.scope import place_of


def join_in_brackets(table: exp.Expr) -> exp.Expr | None:
    """The first item within the brackets, with its joins; None for any other item of FROM."""
    inner: exp.Expr | None = table.this if isinstance(table, exp.Subquery) else None
    if inner is None or (isinstance(inner, exp.Query) and not _is_item(inner)):
        return None
    _refuse_array_join(inner.args.get("joins") or ())
    return inner


def _is_item(query: exp.Query) -> bool:
    """Whether it is itself an item in the brackets around it, and not the query that they hold."""
    if not isinstance(query, exp.Subquery):
        return False
    return bool(query.alias or query.args.get("joins")) or join_in_brackets(query) is not None


def every_column(inner: exp.Expr) -> exp.Select:
    """What an alias over brackets names: the rows of the join in them."""
    return exp.Select(expressions=[exp.Star()]).from_(exp.Subquery(this=inner.copy()))


def values_of(table: exp.Expr) -> exp.Values | None:
    """``(VALUES ..) AS v``, which is an item in a table if it is the first one in brackets; None for any other item."""
    values = table.this if isinstance(table, exp.Table) else table
    return values if isinstance(values, exp.Values) else None


def _refuse_array_join(joins: Sequence[exp.Join]) -> None:
    """Brackets are around joins of two sides."""
    found = next((join for join in joins if is_array_join(join)), None)
    if found is not None:
        raise Unsupported(
            f"{clause_of(found)} is not allowed in brackets",
            where=place_of(found.this, clause_of(found)),
            fix=f"write it without them, or as a subquery: (SELECT .. FROM s {spelled(found)} ..) AS a",
        )
