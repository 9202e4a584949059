"""Errors as answers: a status, and what, where and how to fix it, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import orjson
from pydantic import BaseModel
from pydantic.json_schema import SkipJsonSchema
from starlette.requests import Request
from starlette.responses import Response

from dovetail.changelog.errors import (
    Domain,
    DovetailError,
    EnvironmentFault,
    InternalError,
    ServiceUnavailable,
    SourceRefused,
    SqlError,
    StackError,
    StorageRefused,
    UnknownName,
)
from dovetail.services.session.wait.wait_for import NotIncluded
from dovetail.sql.syntax.redact import quoted

JSON = "application/json"
_AGAIN_S = "1"
_LONGEST = 4_000
"""Characters of what is said: more is what the request repeats."""
_FIX = "correct the request; GET /openapi.json describes all of them"
_FIX_SQL = "correct the statement; DESCRIBE and SHOW tell what there is"
_FIX_OURS = "try again; if that goes on, see the log of the service: dovetail logs serve"


class ErrorDetail(BaseModel, extra="forbid"):
    """What is said of an error. ``offset``: of its place in the text of statements, in characters."""

    kind: str
    what: str
    where: str
    fix: str
    offset: SkipJsonSchema[None] | int = None


class Error(BaseModel, extra="forbid"):
    """The body of an answer that is none, or the line of one that ends early."""

    error: ErrorDetail


class RequestRefused(DovetailError):
    """A request that is not carried out, or not to its end; ``status`` and ``headers`` are those of its answer."""

    domain = Domain.USER

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        fix: str = "",
        status: int = HTTPStatus.BAD_REQUEST,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(what, where=where, fix=fix)
        self.status = status
        self.headers = dict(headers or {})


def status_of(error: DovetailError) -> int:
    """4xx: whoever asks can mend it. 503: it may pass by itself."""
    match error:
        case RequestRefused():
            return error.status
        case UnknownName():
            return HTTPStatus.NOT_FOUND
        case SqlError():
            return HTTPStatus.BAD_REQUEST
        case NotIncluded():
            return HTTPStatus.GATEWAY_TIMEOUT
        case ServiceUnavailable() | EnvironmentFault() | StackError():
            return HTTPStatus.SERVICE_UNAVAILABLE
        case SourceRefused() | StorageRefused():
            return HTTPStatus.BAD_GATEWAY
        case _:
            own = error.domain is Domain.USER
            return HTTPStatus.UNPROCESSABLE_ENTITY if own else HTTPStatus.INTERNAL_SERVER_ERROR


def account_of(error: DovetailError, place: str) -> dict[str, Any]:
    """What is said of an error, cut and with passwords masked; ``place`` where it names none itself."""
    usual = _FIX if error.domain is Domain.USER else _FIX_OURS
    said: dict[str, Any] = {
        "kind": type(error).__name__,
        "what": quoted(error.what, _LONGEST),
        "where": quoted(error.where, _LONGEST) if error.where else quoted(place),
        "fix": quoted(error.fix or (_FIX_SQL if isinstance(error, SqlError) else usual), _LONGEST),
    }
    return said | {"offset": error.offset} if isinstance(error, SqlError) and error.offset is not None else said


def place_of(request: Request) -> str:
    return f"{request.method} {request.url.path}"


def refusal(error: DovetailError, place: str) -> Response:
    """The answer to a request that met ``error``; ``place``: its method and path."""
    headers = dict(error.headers) if isinstance(error, RequestRefused) else {}
    status = status_of(error)
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        headers.setdefault("Retry-After", _AGAIN_S)
    return answered({"error": account_of(error, place)}, status=status, headers=headers)


def defect(place: str) -> Response:
    """The answer where Dovetail itself is at fault: the log has the traceback, and no client."""
    return refusal(InternalError("the service met a defect of its own and has logged it", fix=_FIX_OURS), place)


def answered(members: Any, status: int = HTTPStatus.OK, headers: Mapping[str, str] | None = None) -> Response:
    """JSON; ``<`` is escaped, so that a name with markup is none wherever the text ends up."""
    body = orjson.dumps(members, option=orjson.OPT_NON_STR_KEYS, default=str).replace(b"<", rb"\u003c") + b"\n"
    return Response(body, status, headers, JSON)
