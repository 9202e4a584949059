"""The application: every route behind the same middleware, every error as an answer."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dovetail.changelog.errors import DovetailError
from dovetail.services.serve.dependencies import expect_parameters
from dovetail.services.serve.figures import Figures
from dovetail.services.serve.hang_ups import HangUps
from dovetail.services.serve.nearest_address import nearest_address
from dovetail.services.serve.refusals import Error, RequestRefused, defect, place_of, refusal
from dovetail.services.serve.routes import ROUTERS
from dovetail.services.serve.security_middleware import SecurityMiddleware
from dovetail.services.serve.service import Service
from dovetail.sql.syntax.redact import quoted

_REFUSED = {"model": Error, "description": "what, where, fix"}


def application(service: Service) -> FastAPI:
    """The ASGI application of one service; it closes the service when it ends."""

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        service.watcher.start()
        yield
        service.close()

    app = FastAPI(
        title="Dovetail",
        version="v1",
        description="Joins of Kafka streams in SQL, over HTTP.",
        # What comes by is nobody's but the user's: no pages that load scripts, no spans that leave the process.
        openapi_url=None,
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
        redirect_slashes=False,
        generate_unique_id_function=lambda route: route.name,
        dependencies=[Depends(expect_parameters)],
        responses={"4XX": _REFUSED, "5XX": _REFUSED},
        middleware=[
            Middleware(Counted, figures=service.figures),
            Middleware(HeadAsGet),
            Middleware(HangUps),
            Middleware(SecurityMiddleware, settings=service.settings, authenticator=service.authenticator),
        ],
        exception_handlers={
            DovetailError: _refused,
            RequestValidationError: _invalid,
            HTTPException: _unknown,
            Exception: _defect,
        },
        lifespan=lifespan,
    )
    for router in ROUTERS:
        app.include_router(router)
    app.state.service = service
    return app


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, DovetailError)
    return refusal(error, place_of(request))


async def _invalid(request: Request, error: Exception) -> Response:
    """A parameter that has a few values, and was given another."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    name, values = first["loc"][-1], re.findall(r"'(\w+)'", first["msg"])
    what = f"{first['input']!r} is no value of the parameter {name}"
    refused = RequestRefused(what, where=f"parameter {name}", fix=f"one of: {', '.join(values)}")
    return refusal(refused, place_of(request))


async def _defect(request: Request, _error: Exception) -> Response:
    return defect(place_of(request))


async def _unknown(request: Request, error: Exception) -> Response:
    """No such path, or not by this method."""
    assert isinstance(error, HTTPException)
    path = quoted(request.url.path)
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        what, fix = f"{request.method} is not for {path}", f"ask it by {(error.headers or {}).get('Allow', '')}"
    else:
        what, fix = f"there is nothing at {path}", nearest_address(path)
    headers = {**(error.headers or {})}
    refused = RequestRefused(what, where=path, fix=fix, status=error.status_code, headers=headers)
    return refusal(refused, place_of(request))


class HeadAsGet:
    """An ASGI application that is asked for the answer to GET where its head is asked for: the server sends no more."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, "method": "GET"} if scope.get("method") == "HEAD" else scope, receive, send)


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
