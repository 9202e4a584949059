"""``GET /v1/graph``: what reads what. ``POST /v1/explain``: the plan of a query that is not run."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from dovetail.runtime.clock import now_ms
from dovetail.services.liveness import query_statuses
from dovetail.services.serve.endpoints import Endpoint, Parameter
from dovetail.services.serve.fragments_graph import fragments_of
from dovetail.services.serve.generators import generator_of
from dovetail.services.serve.refusals import JSON, RequestRefused, answered
from dovetail.services.serve.service import service_of, user_of
from dovetail.services.serve.statements.script import TEXTS, script_of
from dovetail.services.session import Session
from dovetail.services.session.queries import as_created
from dovetail.sql.plan.nodes import Node, Output, Shared
from dovetail.sql.syntax.statements import CreateView, Explain, Select

_DETAILS = ("relations", "fragments")


async def graph(request: Request) -> Response:
    detail = request.query_params.get("detail", _DETAILS[0])
    if detail not in _DETAILS:
        raise RequestRefused(
            f"{detail!r} is no detail of a graph", where="parameter detail", fix=f"one of: {', '.join(_DETAILS)}"
        )
    made = fragments_of if detail == "fragments" else graph_of
    return answered(await service_of(request).listings.answer(user_of(request), made))


def graph_of(session: Session) -> dict[str, Any]:
    """Relations, with the state of those that queries make, and an edge from each to every one that uses it, through
    plain views too.
    """
    catalog = session.context.catalog
    states = {one.query.name: one for one in query_statuses(catalog, now_ms())}
    nodes, edges = [], []
    for relation in catalog.relations():
        status = states.get(relation.name)
        node: dict[str, Any] = {"name": relation.name, "kind": relation.what.value}
        if status is not None:
            node |= {"state": status.shown_state, "why": status.why, "topic": status.query.topic}
            node |= {"engine": status.query.engine}
            node |= generator_of(status.query) if status.query.generates else {}
        nodes.append(node)
        edges += [{"from": used, "to": relation.name} for used in sorted(catalog.used(relation.name))]
    return {"nodes": nodes, "edges": edges}


async def explain(request: Request) -> Response:
    service, user = service_of(request), user_of(request)
    script = await script_of(request, service.settings)

    def ask(session: Session) -> dict[str, Any]:
        statements = script.statements(user)
        inner = statements[0].statement if isinstance(statements[0], Explain) else statements[0]
        if len(statements) != 1 or not isinstance(inner, Select | CreateView):
            raise RequestRefused(
                "the plan of one query can be shown", where="body", fix="send one SELECT or CREATE MATERIALIZED VIEW"
            )
        plan = as_created(session.context, inner)
        fragments = [{"name": one.name, "engine": one.engine.value, "plan": tree(one.output)} for one in plan.fragments]
        return {"text": plan.explain(), "fragments": fragments, "warnings": list(plan.warnings)}

    return answered(await service.desk.answer(user, ask))


def tree(node: Output | Node) -> dict[str, Any]:
    """A node, by its line in EXPLAIN, and its inputs; one that several read stands below each of them."""
    if isinstance(node, Shared):
        return tree(node.input)
    return {"node": node.line, "inputs": [tree(below) for below in node.inputs]}


_SQL = {
    "type": "object",
    "required": ["sql"],
    "properties": {"sql": {"type": "string"}, "single": {"type": "boolean", "description": "as of /v1/sql"}},
}
ROUTES = (
    Endpoint(
        "GET",
        "/v1/graph",
        "What there is, its state, and what reads what.",
        graph,
        parameters=(Parameter("detail", "query", "fragments: those of views, and topics, too", _DETAILS),),
    ),
    Endpoint(
        "POST",
        "/v1/explain",
        "The plan of a query, as text and as a tree; nothing is run. CREATE is for an admin, as it is to run it.",
        explain,
        body={**{kind: {"type": "string"} for kind in TEXTS}, JSON: _SQL},
    ),
)
