"""Only the columns that something above reads travel; an upsert stream keeps its primary key besides."""

from __future__ import annotations

from dataclasses import replace

from dovetail.sql.plan.nodes import Output, Scan
from dovetail.sql.plan.properties import walk
from dovetail.sql.plan.query_plan import QueryPlan


def prune(plan: QueryPlan) -> QueryPlan:
    """The last fragment first: what it reads of those before it is what leaves them, their keys besides."""
    made = [] if plan.output is None else [_pruned(plan.output)]
    for part in reversed(plan.upstream):
        read = {name for fragment in made for name in _columns_read(fragment, part.topic)}
        columns = tuple(column for column in part.columns if column[0] in read or column[0] in part.key)
        made.insert(0, _pruned(replace(part, columns=columns)))
    return replace(plan, upstream=tuple(made[:-1]), output=made[-1])


def _columns_read(fragment: Output, topic: str) -> set[str]:
    scans = [node for node in walk(fragment) if isinstance(node, Scan) and node.topic == topic]
    return {name for scan in scans for _, name in scan.columns}


def _pruned(fragment: Output) -> Output:
    needed = {name for _, expr in (*fragment.columns, *fragment.hidden) for name in expr.columns}
    return replace(fragment, input=fragment.input.pruned(needed))
