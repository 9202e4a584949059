"""What a route is: one line, of which the application makes the route and OpenAPI its description."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from dovetail.services.role import Role

Handler = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class Parameter:
    """Of a path, a query or a header (``place``)."""

    name: str
    place: str
    meaning: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class Endpoint:
    """role      who may ask, at least; None: anybody
    body      media type → schema of what is sent
    answers   media type → what is given
    """

    method: str
    path: str
    summary: str
    handler: Handler
    role: Role | None = Role.READER
    parameters: tuple[Parameter, ...] = ()
    body: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    answers: Mapping[str, str] = field(default_factory=lambda: {"application/json": "see the page"})
