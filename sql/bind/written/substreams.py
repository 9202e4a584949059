"""PARTITION BY of a query of Timeplus: each value of its keys is a stream of its own.

SELECT id, max(v) FROM tumble(s, 5s) PARTITION BY id GROUP BY window_start      GROUP BY window_start, id
SELECT id, sum(v) OVER (ORDER BY at) FROM s PARTITION BY id                     OVER (PARTITION BY id ORDER BY at)

So groups and windows are by these keys too. Other rows are the same in every stream.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dovetail.changelog.errors import Unsupported
from dovetail.sql.bind.aggregates import is_grouped
from dovetail.sql.bind.scope import place_of

SUBSTREAMS = "distribute"
"""The argument of a SELECT that holds the keys, as the parser has it."""
_SEVERAL = ("rollup", "cube", "totals")


def in_substreams(query: exp.Query) -> exp.Query:
    """The query with the keys of PARTITION BY among those of its groups and windows. Raises Unsupported for what would
    be of one stream and not of all.
    """
    for select in query.find_all(exp.Select):
        if (clause := select.args.get(SUBSTREAMS)) is None:
            continue
        keys = clause.expressions
        _refuse_beside(select, keys)
        for window in select.find_all(exp.Window):
            if window.find_ancestor(exp.Select) is select and not window.args.get("alias"):
                window.set("partition_by", [*(key.copy() for key in keys), *(window.args.get("partition_by") or ())])
        if is_grouped(select):
            _group(select, clause.pop().expressions)
    return query


def _refuse_beside(select: exp.Select, keys: Sequence[exp.Expr]) -> None:
    place = place_of(keys[0], "PARTITION BY")
    if any(isinstance(key.unnest(), exp.Literal) for key in keys):
        raise Unsupported("PARTITION BY is by columns, not by a value", where=place, fix="PARTITION BY k")
    limit = select.args.get("limit")
    if select.args.get("distinct") or (limit is not None and (limit.expressions or select.args.get("order"))):
        raise Unsupported(
            "DISTINCT and the first rows of an order are not supported beside PARTITION BY",
            where=place,
            fix="SELECT DISTINCT k, v; LIMIT 1 BY k; or QUALIFY row_number() OVER (PARTITION BY k ORDER BY v) <= 2",
        )


def _group(select: exp.Select, keys: Sequence[exp.Expr]) -> None:
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
