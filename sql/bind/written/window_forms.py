"""Forms of window functions that no dialect has: one within another, or within an aggregate; FILTER of those that are
no aggregates.
"""

from __future__ import annotations

from sqlglot import exp

from dovetail.changelog.errors import Unsupported
from dovetail.sql.bind.scope import place_of
from dovetail.sql.expressions.partitions.window_calls import called_in, name_of
from dovetail.sql.functions.aggregate_calls import is_aggregate_call

_OF_PLACES = frozenset({
    *("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead"),
    *("first_value", "firstvalue", "last_value", "lastvalue", "nth_value", "nthvalue"),
})  # fmt: skip
"""Functions that take the value of some row, or its place."""


def refuse_window_forms(query: exp.Query) -> None:
    """Raises Unsupported for the first of them."""
    for window in query.find_all(exp.Window):
        if isinstance(window.this, exp.Identifier):
            continue
        name = name_of(called_in(window))
        if isinstance(window.this, exp.Filter) and name in _OF_PLACES:
            raise Unsupported(
                f"FILTER is for aggregates, and {name}() is none",
                where=place_of(window, "SELECT"),
                fix="CASE WHEN c THEN lag(v) OVER (..) END, or FROM (SELECT .. WHERE c)",
            )
        if (around := _around(window)) is not None:
            raise Unsupported(
                f"a window function within {around} is not supported",
                where=place_of(window, "SELECT"),
                fix="compute it in a subquery: FROM (SELECT v, lag(v) OVER (ORDER BY t) AS before FROM s)",
            )


def _around(window: exp.Expr) -> str | None:
    """The aggregate or window that the call stands in, as it is called; None where it stands in neither."""
    node = window.parent
    while node is not None and not isinstance(node, exp.Query):
        if isinstance(node, exp.Window):
            return "another one"
        if is_aggregate_call(node):
            return "an aggregate"
        node = node.parent
    return None
