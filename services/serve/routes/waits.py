"""``POST /v1/views/{name}/wait``: until a view has answered records of its inputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import APIRouter, Path, Response
from pydantic import Field, PlainValidator, WithJsonSchema

from dovetail.runtime.settings import Settings
from dovetail.services.serve.dependencies import Reader, TheService, sent
from dovetail.services.serve.refusals import RequestRefused, answered
from dovetail.services.serve.routes.answers import WaitAnswer
from dovetail.services.serve.statements.bodies import plain, plain_text
from dovetail.services.serve.statements.members import Members
from dovetail.services.session import Session
from dovetail.services.session.wait.wait_for import TIMEOUT_S, await_included
from dovetail.sql.syntax.statements import InputOffset, WaitFor

ROUTER = APIRouter()
_SHARE = 0.9
"""Of the time of a request: the rest is for saying how far the view is."""
_FORM = (
    'send {"offsets": {"orders": {"0": 123}}}: relation, partition, offset of the record; or {} for all there is now'
)


def _offsets(given: object) -> Iterator[InputOffset]:
    if not isinstance(given, dict) or not given:
        raise RequestRefused('the member "offsets" is no object with relations', where="body", fix=_FORM)
    for name, partitions in given.items():
        plain_text(name, "body, offsets")
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


_SECONDS = {"type": "number", "minimum": 0}
_AtLeastOne = Field(min_length=1)
_Written = Annotated[dict[str, Annotated[dict[str, Annotated[int, Field(ge=0)]], _AtLeastOne]], _AtLeastOne]


class Wait(Members):
    offsets: Annotated[
        tuple[InputOffset, ...],
        PlainValidator(lambda given: tuple(_offsets(given)), json_schema_input_type=_Written),
        Field(
            default_factory=tuple,
            description="relation, partition, offset of the last record to be included; else all there is now",
        ),
    ]
    timeout_s: Annotated[object, WithJsonSchema(_SECONDS), Field(description="504 when it is over")] = None


@ROUTER.post(
    "/v1/views/{name}/wait",
    summary="Wait until a view has answered records of its inputs: its topic holds the answers before the ends told.",
    response_model=WaitAnswer,
    openapi_extra=Wait.described(),
)
async def waited(
    service: TheService,
    user: Reader,
    name: Annotated[str, Path(description="a materialized view"), plain("name")],
    body: Annotated[Wait, sent(Wait)],
) -> Response:
    statement = WaitFor(name, body.offsets, _timeout_s(body.timeout_s, service.settings))

    def ask(session: Session) -> dict[str, Any]:
        found = await_included(session.context, statement)
        return {"name": name, "topic": found.topic, "ends": found.ends}

    return answered(await service.desk.answer(user, ask))


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
