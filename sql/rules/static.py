"""Whether a query is bounded: all that it reads is ``table(x)``."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from sql.functions import function_name


def is_static(query: exp.Query, ctes: Mapping[str, exp.Query]) -> bool:
    """``ctes``: the queries that surround it, by name."""
    own = {cte.alias for cte in query.ctes}
    tables = [
        table for table in query.find_all(exp.Table) if isinstance(table.this, exp.Anonymous) or table.name not in own
    ]
    return bool(tables) and all(_is_static(table, ctes) for table in tables)


def _is_static(table: exp.Table, ctes: Mapping[str, exp.Query]) -> bool:
    if isinstance(table.this, exp.Anonymous):
        return function_name(table.this) == "table"
    return table.name in ctes and is_static(ctes[table.name], {})
