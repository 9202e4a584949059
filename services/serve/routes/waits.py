"""``POST /v1/views/{name}/wait``: until a view has answered records of its inputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from dovetail.runtime.settings import Settings
from dovetail.services.serve.endpoints import Endpoint, Parameter
from dovetail.services.serve.refusals import JSON, RequestRefused, answered
from dovetail.services.serve.service import service_of, user_of
from dovetail.services.serve.statements.bodies import body_of, expect_plain, media_type_of, members_of
from dovetail.services.session import Session
from dovetail.services.session.wait.wait_for import TIMEOUT_S, await_included
from dovetail.sql.syntax.statements import InputOffset, WaitFor

_MEMBERS = ("offsets", "timeout_s")
_SHARE = 0.9
"""Of the time of a request: the rest is for saying how far the view is."""
_FORM = (
    'send {"offsets": {"orders": {"0": 123}}}: relation, partition, offset of the record; or {} for all there is now'
)


async def waited(request: Request) -> Response:
    """Raises RequestRefused for offsets that are none, and for a wait beyond the time of a request."""
    service, user, name = service_of(request), user_of(request), request.path_params["name"]
    expect_plain(name, "name")
    media_type_of(request, (JSON,))
    body = await body_of(request, service.settings.serve_body_bytes, service.settings.serve_body_s)
    members = members_of(body, _MEMBERS)
    offsets = tuple(_offsets(members["offsets"])) if "offsets" in members else ()
    statement = WaitFor(name, offsets, _timeout_s(members.get("timeout_s"), service.settings))

    def ask(session: Session) -> dict[str, Any]:
        found = await_included(session.context, statement)
        return {"name": name, "topic": found.topic, "ends": found.ends}

    return answered(await service.desk.answer(user, ask))


def _offsets(given: object) -> Iterator[InputOffset]:
    if not isinstance(given, dict) or not given:
        raise RequestRefused('the member "offsets" is no object with relations', where="body", fix=_FORM)
    for name, partitions in given.items():
        expect_plain(name, "body, offsets")
        if not isinstance(partitions, dict) or not partitions:
            raise RequestRefused(f'"offsets" has no partitions of "{name}"', where="body", fix=_FORM)
        for partition, offset in partitions.items():
            if not (partition.isascii() and partition.isdigit() and len(partition) < 10):
                raise RequestRefused(
                    f'"{partition}" of "{name}" is no number of a partition', where="body, offsets", fix=_FORM
                )
            if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
                raise RequestRefused(
                    f'the offset of "{name}", partition {partition}, is no whole number', where="body", fix=_FORM
                )
            yield InputOffset(name, int(partition), offset)


def _timeout_s(given: object, settings: Settings) -> float:
    most_s = _SHARE * settings.serve_statement_s
    if given is None:
        return min(TIMEOUT_S, most_s)
    if isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given <= most_s:
        return given
    raise RequestRefused(
        f'the member "timeout_s" is no number from 0 to {most_s:g}',
        where="body",
        fix=f"give one, and ask again when that is over; without it {min(TIMEOUT_S, most_s):g} is taken; "
        "DOVETAIL_SERVE_STATEMENT_S is the longest time of a request",
    )


_BODY = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "offsets": {
            "type": "object",
            "minProperties": 1,
            "description": "relation, partition, offset of the last record to be included; else all there is now",
            "additionalProperties": {
                "type": "object",
                "minProperties": 1,
                "additionalProperties": {"type": "integer", "minimum": 0},
            },
        },
        "timeout_s": {"type": "number", "minimum": 0, "description": "504 when it is over"},
    },
}
ROUTES = (
    Endpoint(
        "POST",
        "/v1/views/{name}/wait",
        "Wait until a view has answered records of its inputs: its topic holds the answers before the ends told.",
        waited,
        parameters=(Parameter("name", "path", "a materialized view"),),
        body={JSON: _BODY},
    ),
)
