"""EMIT PERIODIC d: the fragments that hold the groups take up what has come at most every d."""

from __future__ import annotations

from dataclasses import replace

from dovetail.sql.plan.nodes import Aggregate, Output
from dovetail.sql.plan.properties import walk
from dovetail.sql.plan.query_plan import QueryPlan


def periods(plan: QueryPlan) -> QueryPlan:
    """A fragment without groups, before them or after, waits for nothing: the periods would add up."""

    def timed(fragment: Output) -> Output:
        grouped = any(isinstance(node, Aggregate) for node in walk(fragment))
        return replace(fragment, period_ms=plan.period_ms) if grouped else fragment

    return plan.with_fragments(timed) if plan.period_ms else plan
