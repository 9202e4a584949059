"""The plan of a query of the catalog, made anew from its text wherever it runs.

A release may have a better plan for a query than the one before. What was made under the old one goes on under it,
since its checkpoint holds the state of that: the fingerprint in the catalog tells which of both it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dovetail.changelog.errors import InternalError
from dovetail.sql.catalog import Catalog, Query
from dovetail.sql.planner import Plan, plan_query
from dovetail.sql.query_settings import Value
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateView, Select

FORMER: tuple[Mapping[str, Value], ...] = (
    {"time_digits": False, "subplans_once": False},
    {"time_digits": False, "subplans_once": False, "view_watermarks": False, "self_join_once": False},
    {
        "time_digits": False,
        "subplans_once": False,
        "view_watermarks": False,
        "self_join_once": False,
        "multiway_join": False,
    },
)
"""Settings under which queries are planned as by releases before, the latest first."""


def plan_of(query: Query, catalog: Catalog) -> Plan:
    """All fragments; ``query`` is the one of its own name. As it was planned when it was made, if that is still known;
    else as it would be now, which its checkpoint does not fit.
    """
    statement = parse_one(query.sql)
    if not isinstance(statement, Select | CreateView):
        raise InternalError(f'"{query.name}" is no query', where="the catalog")
    name = query.view or query.name
    if isinstance(statement, CreateView) and statement.name != name:
        statement = on_trial(statement, name)
    plan = plan_query(name, statement, catalog)
    if _is_of(plan, query):
        return plan
    former = (plan_query(name, statement, catalog, settings) for settings in FORMER)
    return next((one for one in former if _is_of(one, query)), plan)


def _is_of(plan: Plan, query: Query) -> bool:
    return any(one.name == query.name and one.fingerprint == query.fingerprint for one in plan.fragments)


def on_trial(view: CreateView, name: str) -> CreateView:
    """The query of ``view`` under another name, to see whether it starts: it writes to no topic that others read."""
    settings = {key: value for key, value in view.settings.items() if key != "late_topic"}
    return replace(view, name=name, into=None, with_data=False, settings=settings)
