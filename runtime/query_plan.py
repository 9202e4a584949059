"""The plan of a query of the catalog, made anew from its text wherever it runs."""

from __future__ import annotations

from changelog.errors import InternalError
from sql.catalog import Catalog, Query
from sql.planner import Plan, plan_query
from sql.syntax.parse import parse_one
from sql.syntax.statements import CreateView, Select


def plan_of(query: Query, catalog: Catalog) -> Plan:
    """All fragments; ``query`` is the one of its own name."""
    statement = parse_one(query.sql)
    if not isinstance(statement, Select | CreateView):
        raise InternalError(f'"{query.name}" is no query', where="the catalog")
    return plan_query(query.view or query.name, statement, catalog)
