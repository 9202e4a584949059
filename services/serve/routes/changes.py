"""``GET /v1/views/{name}/changes``: rows as they come, as server-sent events."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Header, Path, Query, Request, Response

from dovetail.services.serve.dependencies import Reader, TheService
from dovetail.services.serve.statements.accepted import accepted
from dovetail.services.serve.statements.bodies import plain
from dovetail.services.serve.streamed import Streamed
from dovetail.services.serve.tails.events import EVENT_STREAM
from dovetail.services.serve.tails.places import EventPlace, Offsets

ROUTER = APIRouter()
_ANSWER = {"description": "events start, rows and end; each with an id", "content": {EVENT_STREAM: {}}}


@ROUTER.get(
    "/v1/views/{name}/changes",
    summary="Follow a view, a stream or a topic: its rows as they come.",
    response_class=Response,
    responses={200: _ANSWER},
)
async def changes(
    request: Request,
    service: TheService,
    user: Reader,
    name: Annotated[str, Path(description="a view, a stream, dead letters or a topic"), plain("name")],
    begin: Annotated[Literal["now", "beginning"], Query(alias="from", description="where to begin")] = "now",
    last_event_id: Annotated[
        str,
        Header(alias="Last-Event-ID", description="the id of the last event that one has: it goes on behind it"),
    ] = "",
) -> Response:
    accepted(request, (EVENT_STREAM,))
    place = EventPlace.read(last_event_id) if last_event_id else None
    # Whoever resumes does so whatever they asked for at first; None: now.
    beginning: Offsets | None = {} if begin == "beginning" else None
    start = beginning if place is None else place.offsets
    found = await service.fan_out.followed(name, place)
    events = service.fan_out.events(found, start, lambda: service.authenticator.expect_still(user))
    return Streamed(events, service.settings.serve_send_s, EVENT_STREAM)
