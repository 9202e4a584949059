"""What the routes are given: the service, whoever asks, the body; and what is checked of every request."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Request, Security
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer, SecurityScopes

from dovetail.changelog.suggest import suggestion
from dovetail.services.role import Role
from dovetail.services.serve.access.authenticator import expect_role
from dovetail.services.serve.access.users import User
from dovetail.services.serve.refusals import JSON, RequestRefused, place_of
from dovetail.services.serve.service import Service
from dovetail.services.serve.statements.bodies import body_of, media_type_of, text_of
from dovetail.services.serve.statements.members import Members
from dovetail.services.serve.statements.script import Script
from dovetail.sql.syntax.redact import quoted

_TOKEN = HTTPBearer(scheme_name="token", auto_error=False)
_TYPES_OF_SQL = ("text/plain", "application/sql")
TEXTS = (*_TYPES_OF_SQL, "application/x-www-form-urlencoded")
"""The last is what curl says of a text that is given by --data: it is read as it is."""


async def _service(request: Request) -> Service:
    found = request.app.state.service
    assert isinstance(found, Service)
    return found


async def _user(request: Request, roles: SecurityScopes, _token: Annotated[Any, Security(_TOKEN)]) -> User:
    """Whoever asks, as the security middleware has found out. Raises RequestRefused where their role does not include
    that of the route.
    """
    found = request.state.user
    assert isinstance(found, User)
    for role in roles.scopes:
        expect_role(found, Role(role), place_of(request))
    return found


TheService = Annotated[Service, Depends(_service)]
Reader = Annotated[User, Security(_user, scopes=[Role.READER.value])]
Writer = Annotated[User, Security(_user, scopes=[Role.WRITER.value])]


async def _body(request: Request, service: Service) -> bytes:
    return await body_of(request, service.settings.serve_body_bytes, service.settings.serve_body_s)


def sent(model: type[Members]) -> Any:
    """The body of the request, which is JSON with the members of ``model``."""

    async def read(request: Request, service: TheService) -> Members:
        media_type_of(request, (JSON,))
        return model.read(await _body(request, service))

    return Depends(read)


async def _script(request: Request, service: TheService) -> Script:
    kind = media_type_of(request, (*TEXTS, JSON))
    body = await _body(request, service)
    return Script.read(body) if kind == JSON else Script(sql=text_of(body))


TheScript = Annotated[Script, Depends(_script)]
"""The body of a request that has statements, and its description."""
SCRIPT_DESCRIBED = Script.described(*_TYPES_OF_SQL)


async def expect_parameters(request: Request) -> None:
    """Raises RequestRefused for a parameter of the query that the route does not declare, or that is there twice."""
    route = request.scope["route"]
    assert isinstance(route, APIRoute)
    known = [one.alias for one in route.dependant.query_params]
    seen: set[str] = set()
    for name, _ in request.query_params.multi_items():
        if name in seen:
            raise RequestRefused(f"the parameter {name} is given twice", where="query of the URL", fix="give it once")
        if name not in known:
            fix = suggestion(name, known) if known else f"leave it out: {place_of(request)} takes none"
            raise RequestRefused(f"there is no parameter {quoted(name)}", where="query of the URL", fix=fix)
        seen.add(name)
