"""The plan of a query of the catalog, made anew from its text wherever it runs.

The fingerprint in the catalog tells whether it is still the one that the query was made with; a checkpoint fits no
other.

The **successor** of a view is a query that is to take the view's place: planned as the view, so that its checkpoint
fits the view, and run beside it under a name and with a topic of its own.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import replace

from dovetail.broker.query_origin import numbered
from dovetail.broker.topics import Offsets
from dovetail.changelog.errors import InternalError
from dovetail.sql.catalog import Catalog, Query
from dovetail.sql.planner import Plan, plan_query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateView, Select

BEGIN_AT = "begin_at"
"""In the progress of a successor: the offsets at which the view began to read topics that are read from their ends."""
_SUCCESSOR = re.compile(r"(.+)_successor_[0-9a-f]{8}")


def plan_of(query: Query, catalog: Catalog) -> Plan:
    """All fragments; ``query`` is the one of its own name."""
    statement = parse_one(query.sql)
    if not isinstance(statement, Select | CreateView):
        raise InternalError(f'"{query.name}" is no query', where="the catalog")
    name = query.view or query.name
    if isinstance(statement, CreateView) and statement.name != name:
        if view_to_succeed(query) == statement.name:
            return plan_of_successor(query.name, statement, catalog)
        statement = on_trial(statement, name)
    return plan_query(name, statement, catalog)


def on_trial(view: CreateView, name: str) -> CreateView:
    """The query of ``view`` under another name, to see whether it starts: it writes to no topic that others read."""
    return replace(_without_late_topic(view), name=name, into=None, with_data=False)


def plan_of_successor(name: str, view: CreateView, catalog: Catalog) -> Plan:
    """The plan of ``view``, with fragments that go by the name of its successor."""
    plan = plan_query(view.name, _without_late_topic(view), catalog)
    return replace(plan, name=name, fragments=tuple(replace(one, name=name) for one in plan.fragments))


def successor_name(view: str) -> str:
    return f"{view}_successor_{secrets.token_hex(4)}"


def view_to_succeed(query: Query) -> str:
    """The view whose place a query is to take, by its name; '' where it has no such name."""
    found = _SUCCESSOR.fullmatch(query.name) if query.lease_ms else None
    return "" if found is None else found[1]


def begin_at(query: Query) -> Offsets:
    """Topic → partition → offset, of a successor that has not begun yet; else nothing."""
    return {topic: numbered(found) for topic, found in query.progress.get(BEGIN_AT, {}).items()}


def _without_late_topic(view: CreateView) -> CreateView:
    return replace(view, settings={key: value for key, value in view.settings.items() if key != "late_topic"})
