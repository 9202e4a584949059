"""``GET /v1/graph``: what reads what. ``POST /v1/explain``: the plan of a query that is not run."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response

from dovetail.runtime.clock import now_ms
from dovetail.services.generators import generator_of
from dovetail.services.liveness import query_statuses
from dovetail.services.serve.dependencies import SCRIPT_DESCRIBED, Reader, TheScript, TheService
from dovetail.services.serve.fragments_graph import fragments_of
from dovetail.services.serve.refusals import RequestRefused, answered
from dovetail.services.serve.routes.answers import ExplainAnswer, GraphAnswer
from dovetail.services.session import Session
from dovetail.services.session.queries import as_created
from dovetail.sql.plan.nodes import Node, Output, Shared
from dovetail.sql.syntax.statements import CreateView, Explain, Select

ROUTER = APIRouter()
Detail = Literal["relations", "fragments"]


@ROUTER.get("/v1/graph", summary="What there is, its state, and what reads what.", response_model=GraphAnswer)
async def graph(
    service: TheService,
    user: Reader,
    detail: Annotated[Detail, Query(description="fragments: those of views, and topics, too")] = "relations",
) -> Response:
    made = fragments_of if detail == "fragments" else graph_of
    return answered(await service.listings.answer(user, made))


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


@ROUTER.post(
    "/v1/explain",
    summary="The plan of a query, as text and as a tree; nothing is run. CREATE is for an admin, as it is to run it.",
    response_model=ExplainAnswer,
    openapi_extra=SCRIPT_DESCRIBED,
)
async def explain(service: TheService, user: Reader, script: TheScript) -> Response:
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
