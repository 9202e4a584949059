"""What to write in the place of a subquery that stands where none can be planned: a join that says the same."""

from __future__ import annotations

from sqlglot import exp

_AMONG = "LEFT JOIN (SELECT DISTINCT key FROM r) AS r ON l.key = r.key, and test r.key IS NOT NULL, or IS NULL"
ONE_VALUE = "FROM l CROSS JOIN (SELECT max(b) AS b FROM r) AS r WHERE l.a > r.b"
"""A comparison with one value that changes."""
_BY_KEY = "JOIN (SELECT key, max(b) AS b FROM r GROUP BY key) AS r ON l.key = r.key AND l.a > r.b"


def in_place_of(subquery: exp.Expr) -> str:
    """``subquery``: a Subquery, Select or Exists within an expression."""
    test = subquery if isinstance(subquery, exp.Exists) else subquery.find_ancestor(exp.In, exp.Exists)
    if test is None:
        return (
            f"write it in WHERE, HAVING or the select list; or join with its value: {ONE_VALUE}; or by a key: {_BY_KEY}"
        )
    return f"write it in WHERE, HAVING or the select list; or join with its rows: {_AMONG}"
