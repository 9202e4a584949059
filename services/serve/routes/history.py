"""``GET /v1/history``: how the queries are, and have been in the last hour. ``GET /v1/user``: who asks."""

from __future__ import annotations

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from dovetail.services.serve.endpoints import Endpoint, Parameter
from dovetail.services.serve.refusals import RequestRefused, answered
from dovetail.services.serve.service import service_of, user_of


async def history(request: Request) -> Response:
    return answered(service_of(request).watcher.document())


async def history_of(request: Request) -> Response:
    name = request.path_params["name"]
    found = service_of(request).watcher.series(name)
    if found is None:
        raise RequestRefused(
            f'no query "{name}" has been seen',
            where="history",
            fix="GET /v1/history names those that have; one that is new is seen in a moment",
            status=HTTPStatus.NOT_FOUND,
        )
    return answered(found)


async def user(request: Request) -> Response:
    found = user_of(request)
    return answered({"name": found.name, "role": found.role.value, "open": service_of(request).authenticator.is_open})


ROUTES = (
    Endpoint("GET", "/v1/history", "How each query is, with its rates over the last hour.", history),
    Endpoint(
        "GET",
        "/v1/history/{name}",
        "The figures of a query over the last hour.",
        history_of,
        parameters=(Parameter("name", "path", "a query: a view, or a fragment of one"),),
    ),
    Endpoint("GET", "/v1/user", "Who asks, and in which role.", user),
)
