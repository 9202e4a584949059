"""PARTITION BY of a query of Timeplus: each value of its keys is a stream of its own.

SELECT id, max(v) FROM tumble(s, 5s) PARTITION BY id GROUP BY window_start     one group for each id and window

So groups are by these keys besides those of GROUP BY. Rows that are not grouped are the same in every stream.
"""

from __future__ import annotations

from sqlglot import exp

from dovetail.changelog.errors import Unsupported
from dovetail.sql.bind.aggregates import is_grouped
from dovetail.sql.bind.scope import place_of

SUBSTREAMS = "distribute"
"""The argument of a SELECT that holds the keys, as the parser has it."""
_SEVERAL = ("rollup", "cube", "totals", "all")


def grouped_by_substreams(query: exp.Query) -> exp.Query:
    """The query with the keys of PARTITION BY among those of GROUP BY, wherever there are groups."""
    for select in query.find_all(exp.Select):
        keys = select.args.get(SUBSTREAMS)
        if keys is not None and is_grouped(select):
            _group(select, keys.pop().expressions)
    return query


def _group(select: exp.Select, keys: list[exp.Expr]) -> None:
    group = select.args.get("group") or exp.Group()
    sets = any(isinstance(key, exp.Rollup | exp.Cube | exp.GroupingSets) for key in group.expressions)
    if sets or any(group.args.get(several) for several in _SEVERAL):
        raise Unsupported(
            "PARTITION BY beside several groupings is not supported",
            where=place_of(keys[0], "PARTITION BY"),
            fix="put its keys into every set of GROUPING SETS",
        )
    group.set("expressions", [*group.expressions, *keys])
    select.set("group", group)
