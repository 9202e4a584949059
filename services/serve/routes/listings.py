"""What there is: each listing is that of a SHOW statement, as one JSON object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pyarrow as pa
from starlette.requests import Request
from starlette.responses import Response

from dovetail.changelog.formats import json_text
from dovetail.services.serve.endpoints import Endpoint, Parameter
from dovetail.services.serve.refusals import answered
from dovetail.services.serve.service import service_of, user_of
from dovetail.services.serve.statements.bodies import expect_plain
from dovetail.services.serve.statements.json_lines import columns_of
from dovetail.services.session import Rows, Session, Text
from dovetail.sql.catalog import Relation
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.statements import (
    CreateFunction,
    CreateIndex,
    CreateView,
    Describe,
    ExplainAnalyze,
    Show,
    ShowCreate,
    Statement,
)

LISTINGS = {
    "streams": "Streams and tables.",
    "views": "Views, with their state.",
    "dictionaries": "Dictionaries and external tables.",
    "functions": "Functions that users have made.",
    "queries": "Queries at work: state, rows in and out, restarts, errors.",
    "topics": "Topics of the broker.",
    "dead letters": "Dead letters, by topic and reason.",
}


def path_of(listing: str) -> str:
    return f"/v1/{listing.replace(' ', '-')}"


def listed(statement: Statement) -> Callable[[Session], dict[str, Any]]:
    """The rows of a statement that lists something."""

    def ask(session: Session) -> dict[str, Any]:
        found = session.execute(statement)
        assert isinstance(found, Rows)
        return {"columns": columns_of(found.table.schema), "rows": objects(found.table)}

    return ask


def objects(rows: pa.Table) -> list[Any]:
    return [orjson.loads(row) for row in json_text.objects(rows)]


def _listing(what: str) -> Endpoint:
    async def answer(request: Request) -> Response:
        like = request.query_params.get("like")
        expect_plain(like or "", "parameter like")
        ask = listed(Show(what, like))
        return answered(await service_of(request).listings.answer(user_of(request), ask))

    like = Parameter("like", "query", "a pattern of names, as of LIKE; of dead letters, of reasons")
    return Endpoint("GET", path_of(what), LISTINGS[what], answer, parameters=(like,))


async def relation(request: Request) -> Response:
    name = request.path_params["name"]
    expect_plain(name, "name")

    def ask(session: Session) -> dict[str, Any]:
        found = session.context.catalog.get(name)
        created = session.execute(ShowCreate(name))
        assert isinstance(created, Text)
        catalog = session.context.catalog
        users = [user.name for user in catalog.users(name)]
        members = {"name": name, "kind": found.what.value, "definition": created.text}
        members["columns"] = _columns(session, found)
        return members | {"reads": sorted(catalog.used(name)), "read_by": sorted(users)}

    return answered(await service_of(request).listings.answer(user_of(request), ask))


def _columns(session: Session, found: Relation) -> list[dict[str, str]]:
    """As DESCRIBE tells them; of a plain view, which has no topic, those of its query."""
    match found.definition:
        case CreateView(materialized=False) as view:
            schema = plan_query(view.name, view, session.context.catalog).schema
            return [{"column": column["name"], "type": column["type"]} for column in columns_of(schema)]
        case CreateIndex() | CreateFunction():
            return []
        case _:
            described: list[dict[str, str]] = listed(Describe(found.name))(session)["rows"]
            return described


async def plan(request: Request) -> Response:
    """The plan of a view at work, as EXPLAIN ANALYZE tells it to programs."""
    name = request.path_params["name"]
    expect_plain(name, "name")

    def ask(session: Session) -> dict[str, Any]:
        found = session.execute(ExplainAnalyze(name, "json"))
        assert isinstance(found, Text)
        return {"name": name, "queries": orjson.loads(found.text)}

    return answered(await service_of(request).listings.answer(user_of(request), ask))


_NAME = (Parameter("name", "path", "what is asked about"),)
ROUTES = (
    *(_listing(what) for what in LISTINGS),
    Endpoint(
        "GET",
        "/v1/relations/{name}",
        "A stream, view, dictionary or function: columns, definition, uses.",
        relation,
        parameters=_NAME,
    ),
    Endpoint(
        "GET",
        "/v1/views/{name}/plan",
        "The plan of a view at work: each node with rows, state and time.",
        plan,
        parameters=_NAME,
    ),
)
