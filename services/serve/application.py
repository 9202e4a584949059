"""The application: every route behind one gate, every error as an answer."""

from __future__ import annotations

import difflib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dovetail.changelog.errors import DovetailError
from dovetail.changelog.suggest import suggestion
from dovetail.services.serve.access.authenticator import expect_role
from dovetail.services.serve.endpoints import Endpoint, Handler
from dovetail.services.serve.figures import Figures
from dovetail.services.serve.hang_ups import HangUps
from dovetail.services.serve.refusals import RequestRefused, defect, refusal
from dovetail.services.serve.routes import ENDPOINTS
from dovetail.services.serve.security_middleware import SecurityMiddleware
from dovetail.services.serve.service import Service, place_of, user_of
from dovetail.sql.syntax.redact import quoted


def application(service: Service) -> Starlette:
    """The ASGI application of one service; it closes the service when it ends."""

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        service.watcher.start()
        yield
        service.close()

    app = Starlette(
        routes=[Route(one.path, _allowed(one), methods=[one.method]) for one in ENDPOINTS],
        middleware=[
            Middleware(Counted, figures=service.figures),
            Middleware(HangUps),
            Middleware(SecurityMiddleware, settings=service.settings, authenticator=service.authenticator),
        ],
        exception_handlers={DovetailError: _refused, HTTPException: _unknown, Exception: _defect},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.state.service = service
    return app


def _allowed(endpoint: Endpoint) -> Handler:
    """The handler for those who may ask."""

    async def handle(request: Request) -> Response:
        if endpoint.role is not None:
            expect_role(user_of(request), endpoint.role, place_of(request))
        _expect_parameters(endpoint, request)
        return await endpoint.handler(request)

    return handle


def _expect_parameters(endpoint: Endpoint, request: Request) -> None:
    """Raises RequestRefused for a parameter of the query that the route does not declare, or that is there twice."""
    known = [one.name for one in endpoint.parameters if one.place == "query"]
    seen: set[str] = set()
    for name, _ in request.query_params.multi_items():
        if name in seen:
            raise RequestRefused(f"the parameter {name} is given twice", where="query of the URL", fix="give it once")
        if name not in known:
            fix = suggestion(name, known) if known else f"leave it out: {place_of(request)} takes none"
            raise RequestRefused(f"there is no parameter {quoted(name)}", where="query of the URL", fix=fix)
        seen.add(name)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, DovetailError)
    return refusal(error, place_of(request))


async def _defect(request: Request, _error: Exception) -> Response:
    return defect(place_of(request))


async def _unknown(request: Request, error: Exception) -> Response:
    """No such path, or not by this method."""
    assert isinstance(error, HTTPException)
    path = quoted(request.url.path)
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        what, fix = f"{request.method} is not for {path}", f"ask it by {(error.headers or {}).get('Allow', '')}"
    else:
        near = difflib.get_close_matches(path, [one.path for one in ENDPOINTS], n=1)
        what = f"there is nothing at {path}"
        fix = f"did you mean {near[0]}? " if near else ""
        fix += "GET /openapi.json has all paths"
    headers = {**(error.headers or {})}
    refused = RequestRefused(what, where=path, fix=fix, status=error.status_code, headers=headers)
    return refusal(refused, place_of(request))


class Counted:
    """An ASGI application whose answers are counted by status."""

    def __init__(self, app: ASGIApp, figures: Figures) -> None:
        self._app = app
        self._figures = figures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._figures.requests.labels(str(message["status"])).inc()
            await send(message)

        await self._app(scope, receive, counted)
