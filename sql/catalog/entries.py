"""The entries of a planned query in the catalog."""

from __future__ import annotations

from dovetail.sql.catalog.records import Query
from dovetail.sql.planner import Plan


def queries_of(plan: Plan, text: str) -> tuple[Query, ...]:
    """One entry for each fragment, upstream first; ``text`` is the statement. The last one has the plan's own name."""
    return tuple(
        Query(
            name=fragment.name,
            sql=text,
            plan=plan.explain(),
            fingerprint=fragment.fingerprint,
            topic=fragment.output.topic,
            engine=fragment.engine.value,
            view=plan.name,
        )
        for fragment in plan.fragments
    )
