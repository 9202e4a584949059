"""What to write in the place of a subquery in an expression: a join that says the same, and can be planned."""

from __future__ import annotations

from sqlglot import exp

_PRESENT = "JOIN (SELECT DISTINCT key FROM r) AS r ON l.key = r.key"
_ABSENT = "LEFT JOIN (SELECT DISTINCT key FROM r) AS r ON l.key = r.key WHERE r.key IS NULL"
ONE_VALUE = (
    "FROM (SELECT *, 1 AS one FROM l) AS l JOIN (SELECT 1 AS one, max(b) AS b FROM r) AS r "
    "ON l.one = r.one AND l.a > r.b"
)
"""A comparison with one value that changes: a join needs an equality, and a constant is one."""
_BY_KEY = "JOIN (SELECT key, max(b) AS b FROM r GROUP BY key) AS r ON l.key = r.key AND l.a > r.b"


def in_place_of(subquery: exp.Expr) -> str:
    """``subquery``: a Subquery, Select or Exists within an expression."""
    asking = subquery if isinstance(subquery, exp.Exists) else subquery.find_ancestor(exp.In, exp.Exists)
    if asking is None:
        return f"join with its value, by a constant: {ONE_VALUE}; or by a key: {_BY_KEY}"
    around: exp.Expr | None = asking.parent
    while isinstance(around, exp.Paren):
        around = around.parent
    return f"join with its rows: {_ABSENT if isinstance(around, exp.Not) else _PRESENT}"
