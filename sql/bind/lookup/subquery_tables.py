"""Subqueries over a table that is no stream: a dictionary, which is asked by key, or ``table(x)``, which is read once.

What such a subquery says of the row around becomes a condition of the join, if it selects and filters one table and
does no more. Any other one is computed as a whole when the query starts, and can say nothing of the row around.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from dovetail.changelog.errors import UnknownName, Unsupported
from dovetail.sql.bind.aggregates import is_grouped
from dovetail.sql.bind.clauses import is_process_time
from dovetail.sql.bind.scope import Scope, place_of
from dovetail.sql.bind.static import is_static
from dovetail.sql.relations import Relations

_FURTHER_CLAUSES = (
    "with_",
    "joins",
    "laterals",
    "distribute",
    "group",
    "having",
    "qualify",
    "windows",
    "distinct",
    "order",
    "limit",
    "offset",
)


def is_over_table(query: exp.Query, ctes: Mapping[str, exp.Query], catalog: Relations) -> bool:
    """Whether a subquery reads no stream as one."""
    lone = lone_table(query)
    return is_static(query, ctes, catalog) or (isinstance(lone, exp.Table) and is_process_time(lone))


def lone_table(query: exp.Query) -> exp.Expr | None:
    """The FROM item of a query that selects and filters this one table; None for any other query."""
    source = query.args.get("from_")
    if not isinstance(query, exp.Select) or source is None or any(query.args.get(name) for name in _FURTHER_CLAUSES):
        return None
    where = query.args.get("where")
    within = [*query.expressions, *([] if where is None else [where])]
    if is_grouped(query) or any(part.find(exp.Query, exp.Window) is not None for part in within):
        return None
    table: exp.Expr = source.this
    return table


def has_one_row(query: exp.Query) -> bool:
    """Whether there is one row at most: aggregates of all rows, or the first."""
    if not isinstance(query, exp.Select):
        return False
    limit = query.args.get("limit")
    first = limit is not None and isinstance(limit.expression, exp.Literal) and limit.expression.this in ("0", "1")
    return first or (is_grouped(query) and query.args.get("group") is None)


def refuse_row_around(query: exp.Query, outer: Scope, fault: UnknownName) -> None:
    """Raises Unsupported if ``fault`` is that a query which is computed once reads a column of the row around."""
    read = [column for column in query.find_all(exp.Column) if outer.knows(column)]
    # Line and column alone: the clause is that of the subquery in the one, of the query around in the other.
    found = next((one for one in read if fault.where.startswith(f"{place_of(one, '').splitlines()[0]},")), None)
    if found is not None:
        raise Unsupported(
            "a subquery over table(x), or over a dictionary, that groups, orders or joins is computed once, and "
            f'"{found.sql()}" is of the row around',
            where=fault.where,
            fix="do that in FROM, and compare outside of it: EXISTS (SELECT 1 FROM (SELECT k, count() AS c FROM "
            "table(r) GROUP BY k) AS g WHERE g.k = l.k AND g.c > 1)",
        )
