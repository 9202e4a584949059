"""The first rows of partitions are an operator of their own, which keeps and reads fewer rows."""

from __future__ import annotations

from dovetail.sql.plan.maps import identity
from dovetail.sql.plan.nodes import Map, Node, rebuilt
from dovetail.sql.plan.query_plan import QueryPlan
from dovetail.sql.plan.top_rows import first_rows


def top_n(plan: QueryPlan) -> QueryPlan:
    return plan.with_rows(_limited(plan.rows))


def _limited(node: Node) -> Node:
    made = rebuilt(node, _limited)
    found = first_rows(made) if isinstance(made, Map) else None
    if found is None:
        return made
    return found.input if found.where is None and found.columns == identity(found.input) else found
