"""What there is: each listing is that of a SHOW statement, as one JSON object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import orjson
import pyarrow as pa
from fastapi import APIRouter, Path, Query, Response

from dovetail.changelog.formats import json_text
from dovetail.services.serve.dependencies import Reader, TheService
from dovetail.services.serve.refusals import answered
from dovetail.services.serve.routes.answers import ListingAnswer, PlanAnswer, RelationAnswer
from dovetail.services.serve.statements.bodies import plain
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

ROUTER = APIRouter()
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


Name = Annotated[str, Path(description="what is asked about"), plain("name")]


def _add_listing(what: str) -> None:
    @ROUTER.get(path_of(what), summary=LISTINGS[what], name=what.replace(" ", "_"), response_model=ListingAnswer)
    async def listing(
        service: TheService,
        user: Reader,
        like: Annotated[
            str | None,
            Query(description="a pattern of names, as of LIKE; of dead letters, of reasons"),
            plain("parameter like"),
        ] = None,
    ) -> Response:
        return answered(await service.listings.answer(user, listed(Show(what, like))))


for one in LISTINGS:
    _add_listing(one)


@ROUTER.get(
    "/v1/relations/{name}",
    summary="A stream, view, dictionary or function: columns, definition, uses.",
    response_model=RelationAnswer,
)
async def relation(service: TheService, user: Reader, name: Name) -> Response:
    def ask(session: Session) -> dict[str, Any]:
        found = session.context.catalog.get(name)
        created = session.execute(ShowCreate(name))
        assert isinstance(created, Text)
        catalog = session.context.catalog
        users = [user.name for user in catalog.users(name)]
        members: dict[str, Any] = {"name": name, "kind": found.what.value, "definition": created.text}
        members["columns"] = _columns(session, found)
        return members | {"reads": sorted(catalog.used(name)), "read_by": sorted(users)}

    return answered(await service.listings.answer(user, ask))


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


@ROUTER.get(
    "/v1/views/{name}/plan",
    summary="The plan of a view at work, as of EXPLAIN ANALYZE: each node with rows, state and time.",
    response_model=PlanAnswer,
)
async def plan(service: TheService, user: Reader, name: Name) -> Response:
    def ask(session: Session) -> dict[str, Any]:
        found = session.execute(ExplainAnalyze(name, "json"))
        assert isinstance(found, Text)
        return {"name": name, "queries": orjson.loads(found.text)}

    return answered(await service.listings.answer(user, ask))
