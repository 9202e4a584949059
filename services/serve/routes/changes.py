"""``GET /v1/views/{name}/changes``: rows as they come, as server-sent events."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from dovetail.services.serve.endpoints import Endpoint, Parameter
from dovetail.services.serve.refusals import RequestRefused
from dovetail.services.serve.service import service_of, user_of
from dovetail.services.serve.statements.accepted import accepted
from dovetail.services.serve.statements.bodies import expect_plain
from dovetail.services.serve.streamed import Streamed
from dovetail.services.serve.tails.events import EVENT_STREAM
from dovetail.services.serve.tails.places import EventPlace, Offsets

_FROM = ("now", "beginning")


async def changes(request: Request) -> Response:
    service, user, name = service_of(request), user_of(request), request.path_params["name"]
    accepted(request, (EVENT_STREAM,))
    expect_plain(name, "name")
    place = _place(request)
    start = _start(request, place)
    found = await service.fan_out.followed(name, place)
    events = service.fan_out.events(found, start, lambda: service.authenticator.expect_still(user))
    return Streamed(events, service.settings.serve_send_s, EVENT_STREAM)


def _place(request: Request) -> EventPlace | None:
    given = request.headers.get("last-event-id", "")
    return EventPlace.read(given) if given else None


def _start(request: Request, place: EventPlace | None) -> Offsets | None:
    """None: now. Whoever resumes does so whatever they asked for at first."""
    given = request.query_params.get("from", "now")
    if given not in _FROM:
        raise RequestRefused(
            f"{given!r} is no place to begin at", where="parameter from", fix=f"one of: {', '.join(_FROM)}"
        )
    if place is not None:
        return place.offsets
    return {} if given == "beginning" else None


ROUTES = (
    Endpoint(
        "GET",
        "/v1/views/{name}/changes",
        "Follow a view, a stream or a topic: its rows as they come.",
        changes,
        parameters=(
            Parameter("name", "path", "a view, a stream, dead letters or a topic"),
            Parameter("from", "query", "where to begin", _FROM),
            Parameter("Last-Event-ID", "header", "the id of the last event that one has: it goes on behind it"),
        ),
        answers={EVENT_STREAM: "events start, rows and end; each with an id"},
    ),
)
