"""The columns of SHOW VIEWS that say how far views are behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dovetail.changelog.errors import ServiceUnavailable
from dovetail.services.session.context import Context
from dovetail.services.session.live.backlog import Backlog, duration_text
from dovetail.sql.catalog import Desired, Query

NO_BACKLOG: Mapping[str, object] = {"backlog": None, "read": "", "time left": ""}
"""The columns, of a view that is not behind."""


def view_backlogs(context: Context, queries: Sequence[Query]) -> tuple[dict[str, Mapping[str, object]], str]:
    """View → its columns, of those that are behind; and a note where it is not known of which that is so.

    A broker that is silent is asked once.
    """
    views: dict[str, list[Query]] = {}
    for query in queries:
        views.setdefault(query.view, []).append(query)
    topics = {topic for query in queries for topic in query.progress.get("starts", {})}
    if not topics:
        return {}, ""
    try:
        ends = context.topics.all_ends(sorted(topics))
    except ServiceUnavailable:
        return {}, "how far views are behind is not known: the broker does not answer"
    found = {name: Backlog.of(fragments, ends) for name, fragments in views.items()}
    return {name: _columns(one, views[name]) for name, one in found.items() if one is not None and one.left}, ""


def _columns(one: Backlog, fragments: Sequence[Query]) -> Mapping[str, object]:
    """A view that is not to run has no time left."""
    working = fragments[-1].desired is Desired.RUNNING
    left_s = one.seconds_left(sum(fragment.worked_s for fragment in fragments)) if working else None
    left = "" if left_s is None else f"at most {duration_text(left_s)}"
    return {"backlog": one.left, "read": f"{one.percent} %", "time left": left}
