"""The plan of a query of the catalog, made anew from its text wherever it runs.

The fingerprint in the catalog tells whether it is still the one that the query was made with; a checkpoint fits no
other.
"""

from __future__ import annotations

from dataclasses import replace

from dovetail.changelog.errors import InternalError
from dovetail.sql.catalog import Catalog, Query
from dovetail.sql.planner import Plan, plan_query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateView, Select


def plan_of(query: Query, catalog: Catalog) -> Plan:
    """All fragments; ``query`` is the one of its own name."""
    statement = parse_one(query.sql)
    if not isinstance(statement, Select | CreateView):
        raise InternalError(f'"{query.name}" is no query', where="the catalog")
    name = query.view or query.name
    if isinstance(statement, CreateView) and statement.name != name:
        statement = on_trial(statement, name)
    return plan_query(name, statement, catalog)


def on_trial(view: CreateView, name: str) -> CreateView:
    """The query of ``view`` under another name, to see whether it starts: it writes to no topic that others read."""
    settings = {key: value for key, value in view.settings.items() if key != "late_topic"}
    return replace(view, name=name, into=None, with_data=False, settings=settings)
