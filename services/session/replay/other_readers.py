"""Who reads a topic: a record that is put back comes to all of them, also to those that could use it at once."""

from __future__ import annotations

from collections.abc import Collection

from dovetail.services.session.context import Context
from dovetail.services.session.input_progress import input_topics
from dovetail.sql.catalog import What
from dovetail.sql.planner import plan_query


def other_readers(context: Context, topics: Collection[str], but: Collection[str]) -> dict[str, list[str]]:
    """For each of ``topics`` the views that read it, without those of the queries whose dead letters it gets back. A
    topic that nobody else reads is left out.
    """
    if not topics:
        return {}
    own = {query.view for query in context.catalog.queries() if query.name in but}
    readings = {view: read for view, read in _readings(context).items() if view not in own}
    readers = {topic: [view for view, read in readings.items() if topic in read] for topic in topics}
    return {topic: views for topic, views in readers.items() if views}


def _readings(context: Context) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for relation in context.catalog.relations(What.VIEW):
        view = relation.materialized_view
        if view is not None:
            plan = plan_query(view.name, view, context.catalog)
            found[view.name] = {topic for fragment in plan.fragments for topic in input_topics(fragment)}
    return found
