"""The routes of the registry, and what every request passes before: where it was sent, by whom, its type and size."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dovetail.broker.registry.protobuf_text import serialised_text
from dovetail.broker.registry.registered import Reference, SchemaNonsense, SchemaText, SchemaType
from dovetail.runtime.serving.foreign_requests import hosts_of
from dovetail.runtime.settings import Settings
from dovetail.services.registry.protection import expect_login
from dovetail.services.registry.refusals import RefusalCode, RegistryRefused
from dovetail.services.registry.store import Version
from dovetail.services.registry.subjects import ANONYMOUS_ADMIN, Subjects
from dovetail.services.serve.refusals import RequestRefused
from dovetail.services.serve.security_middleware import expect_host, expect_own_page
from dovetail.services.serve.statements.bodies import body_of, media_type_of
from dovetail.sql.syntax.redact import quoted

_LOG = logging.getLogger("dovetail.registry")
_MEDIA = "application/vnd.schemaregistry.v1+json"
_TYPES_OF_BODIES = (_MEDIA, "application/vnd.schemaregistry+json", "application/json")
_OPEN_PATHS = ("/", "/health")
"""What is answered without a login: nothing of it is about schemas."""
_NOT_KEPT = ("metadata", "ruleSet")
Handler = Callable[["RegistryRequest"], Any]


class RegistryRequest:
    """A request as the routes see it: parts of its path, its query, its body."""

    def __init__(self, subjects: Subjects, request: Request, body: bytes) -> None:
        self.subjects = subjects
        self._request = request
        self._body = body

    @property
    def parts(self) -> Mapping[str, str]:
        """Of the path, by name."""
        return self._request.path_params

    def part(self, name: str) -> str:
        return self.parts[name]

    def flag(self, name: str) -> bool:
        return self._request.query_params.get(name, "").lower() == "true"

    def word(self, name: str) -> str:
        return self._request.query_params.get(name, "")

    @property
    def schema_id(self) -> int:
        text = self.part("id")
        if not (text.isascii() and text.isdigit() and len(text) < 11):
            raise RegistryRefused(RefusalCode.SCHEMA_UNKNOWN, f"{text!r} is no id of a schema; give a number")
        return int(text)

    def members(self) -> dict[str, Any]:
        """The body, which is a JSON object."""
        try:
            read = orjson.loads(self._body)
        except orjson.JSONDecodeError as fault:
            raise RegistryRefused(RefusalCode.INVALID_REQUEST, f"the body is no JSON: {fault.msg}") from None
        if not isinstance(read, dict):
            raise RegistryRefused(RefusalCode.INVALID_REQUEST, "the body is no JSON object")
        return read

    def schema(self) -> SchemaText:
        """The schema that the body holds."""
        members = self.members()
        for name in _NOT_KEPT:
            if members.get(name):
                raise RegistryRefused(RefusalCode.INVALID_SCHEMA, f"{name} is not kept here; leave it out")
        kind, text = members.get("schemaType") or SchemaType.AVRO, members.get("schema")
        if kind not in SchemaType.__members__:
            raise RegistryRefused(RefusalCode.INVALID_SCHEMA, f"schemaType is one of {', '.join(SchemaType)}")
        if not isinstance(text, str) or not text:
            raise RegistryRefused(RefusalCode.INVALID_SCHEMA, "schema is to be the text of a schema")
        references = members.get("references") or []
        if not isinstance(references, list):
            raise RegistryRefused(RefusalCode.INVALID_SCHEMA, "references is to be an array")
        return SchemaText(SchemaType(kind), text, tuple(_reference(one) for one in references))


def registry_application(subjects: Subjects, settings: Settings) -> Starlette:
    """The ASGI application over ``subjects``."""
    hosts = hosts_of(settings.schema_registry_bind, settings.schema_registry_hosts)

    def route(path: str, method: str, handler: Handler) -> Route:
        async def handle(request: Request) -> Response:
            expect_host(request.headers, hosts, "DOVETAIL_SCHEMA_REGISTRY_HOSTS")
            expect_own_page(request.headers, request.url.scheme, ())
            if path not in _OPEN_PATHS:
                expect_login(request.headers, settings)
            if method in ("POST", "PUT"):
                media_type_of(request, _TYPES_OF_BODIES)
            body = await body_of(request, settings.serve_body_bytes, settings.serve_body_s)
            return _answer(await run_in_threadpool(handler, RegistryRequest(subjects, request, body)))

        return Route(path, handle, methods=[method])

    app = Starlette(
        routes=[route(*one) for one in _ROUTES],
        exception_handlers={
            RegistryRefused: _refused,
            RequestRefused: _not_taken,
            HTTPException: _unknown,
            Exception: _defect,
        },
    )
    app.router.redirect_slashes = False
    return app


def _answer(said: Any, status: int = HTTPStatus.OK, allowed: str | None = None) -> Response:
    return Response(orjson.dumps(said), status, {"Allow": allowed} if allowed else None, _MEDIA)


def _error_response(number: int, message: str, status: int, allowed: str | None = None) -> Response:
    return _answer({"error_code": number, "message": message}, status, allowed)


def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RegistryRefused)
    return _error_response(int(error.code), error.message, error.status)


def _not_taken(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestRefused)
    answer = _error_response(error.status, f"{error.what}; {error.fix}", error.status)
    answer.headers.update(error.headers)
    return answer


def _unknown(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    what = f"{request.method} {quoted(request.url.path)}: {error.detail}"
    return _error_response(error.status_code, what, error.status_code, (error.headers or {}).get("Allow"))


def _defect(request: Request, error: Exception) -> Response:
    _LOG.error("%s %s failed", request.method, request.url.path, exc_info=error)
    return _error_response(
        50001, "the registry met a defect of its own and has logged it", HTTPStatus.INTERNAL_SERVER_ERROR
    )


def _reference(given: Any) -> Reference:
    match given:
        case {"name": str(name), "subject": str(subject), "version": int(version)}:
            return Reference(name, subject, version)
    raise RegistryRefused(RefusalCode.INVALID_SCHEMA, "a reference has a name, a subject and a version")


def _shown(schema: SchemaText, text: str) -> dict[str, Any]:
    """Members of a schema; that of AVRO is not named, as older clients expect it."""
    shown: dict[str, Any] = {"schema": text}
    if schema.type is not SchemaType.AVRO:
        shown["schemaType"] = schema.type.value
    if schema.references:
        shown["references"] = [
            {"name": one.name, "subject": one.subject, "version": one.version} for one in schema.references
        ]
    return shown


def _text(request: RegistryRequest, schema: SchemaText) -> str:
    if schema.type is not SchemaType.PROTOBUF or request.word("format") != "serialized":
        return schema.text
    try:
        return serialised_text(request.subjects.whole(schema))
    except SchemaNonsense as nonsense:
        raise RegistryRefused(RefusalCode.INVALID_SCHEMA, str(nonsense)) from None


def _version(request: RegistryRequest, version: Version) -> dict[str, Any]:
    schema = request.subjects.schema(version.schema_id)
    members = {"subject": version.subject, "version": version.version, "id": version.schema_id}
    return members | _shown(schema, _text(request, schema))


def _schema(request: RegistryRequest) -> Any:
    schema = request.subjects.schema(request.schema_id)
    return _shown(schema, _text(request, schema))


def _subject_version(request: RegistryRequest) -> Version:
    return request.subjects.version(request.part("subject"), request.part("version"), deleted=request.flag("deleted"))


def _register(request: RegistryRequest) -> Any:
    made = request.subjects.register(request.part("subject"), request.schema())
    return _version(request, made)


def _look_up(request: RegistryRequest) -> Any:
    found = request.subjects.look_up(request.part("subject"), request.schema(), deleted=request.flag("deleted"))
    return _version(request, found)


def _compatible(request: RegistryRequest) -> Any:
    reasons = request.subjects.objections(request.part("subject"), request.schema(), request.parts.get("version"))
    said: dict[str, Any] = {"is_compatible": not reasons}
    return said | {"messages": reasons} if request.flag("verbose") else said


def _set_level(request: RegistryRequest, subject: str) -> Any:
    given = request.members().get("compatibility")
    if not isinstance(given, str):
        raise RegistryRefused(RefusalCode.INVALID_LEVEL, "compatibility is to be a text")
    request.subjects.set_level(subject, given)
    return {"compatibility": given.upper()}


def _own_level(request: RegistryRequest) -> Any:
    inherited = request.flag("defaultToGlobal")
    return {"compatibilityLevel": request.subjects.level(request.part("subject"), inherited=inherited)}


_SUBJECT = "/subjects/{subject}"
_VERSION = "/subjects/{subject}/versions/{version}"
_CHECK = "/compatibility/subjects/{subject}/versions"
_CONFIG = "/config/{subject}"
_ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("/", "GET", lambda request: {}),
    ("/health", "GET", lambda request: {"subjects": len(request.subjects.names())}),
    ("/schemas/types", "GET", lambda request: [*SchemaType]),
    ("/schemas/ids/{id}", "GET", _schema),
    ("/schemas/ids/{id}/schema", "GET", lambda request: orjson.Fragment(_schema(request)["schema"])),
    (
        "/schemas/ids/{id}/subjects",
        "GET",
        lambda request: [
            one.subject for one in request.subjects.having(request.schema_id, deleted=request.flag("deleted"))
        ],
    ),
    (
        "/schemas/ids/{id}/versions",
        "GET",
        lambda request: [
            {"subject": one.subject, "version": one.version}
            for one in request.subjects.having(request.schema_id, deleted=request.flag("deleted"))
        ],
    ),
    (
        "/subjects",
        "GET",
        lambda request: [
            name
            for name in request.subjects.names(deleted=request.flag("deleted"))
            if name.startswith(request.word("subjectPrefix"))
        ],
    ),
    (_SUBJECT, "POST", _look_up),
    (
        _SUBJECT,
        "DELETE",
        lambda request: request.subjects.delete(request.part("subject"), permanent=request.flag("permanent")),
    ),
    (
        f"{_SUBJECT}/versions",
        "GET",
        lambda request: [
            one.version for one in request.subjects.versions(request.part("subject"), deleted=request.flag("deleted"))
        ],
    ),
    (f"{_SUBJECT}/versions", "POST", _register),
    (_VERSION, "GET", lambda request: _version(request, _subject_version(request))),
    (
        _VERSION,
        "DELETE",
        lambda request: request.subjects.delete_version(
            request.part("subject"), request.part("version"), permanent=request.flag("permanent")
        ),
    ),
    (
        f"{_VERSION}/schema",
        "GET",
        lambda request: orjson.Fragment(_version(request, _subject_version(request))["schema"]),
    ),
    (
        f"{_VERSION}/referencedby",
        "GET",
        lambda request: request.subjects.referring(_subject_version(request)),
    ),
    (_CHECK, "POST", _compatible),
    (_CHECK + "/{version}", "POST", _compatible),
    ("/config", "GET", lambda request: {"compatibilityLevel": request.subjects.level()}),
    ("/config", "PUT", lambda request: _set_level(request, ANONYMOUS_ADMIN)),
    (_CONFIG, "GET", _own_level),
    (_CONFIG, "PUT", lambda request: _set_level(request, request.part("subject"))),
    (
        _CONFIG,
        "DELETE",
        lambda request: {"compatibility": request.subjects.set_level(request.part("subject"), None)},
    ),
    ("/mode", "GET", lambda request: {"mode": "READWRITE"}),
    ("/mode/{subject}", "GET", lambda request: {"mode": "READWRITE"}),
)
