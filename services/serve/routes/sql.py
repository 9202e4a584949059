"""``POST /v1/sql``: statements, and their results."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import aclosing
from threading import Event

from starlette.requests import Request
from starlette.responses import Response

from dovetail.services.serve.endpoints import Endpoint
from dovetail.services.serve.refusals import JSON
from dovetail.services.serve.service import place_of, service_of, user_of
from dovetail.services.serve.statements.accepted import accepted
from dovetail.services.serve.statements.arguments import TYPED
from dovetail.services.serve.statements.arrow_stream import ARROW, arrow_stream, expect_rows
from dovetail.services.serve.statements.json_lines import NDJSON, json_lines
from dovetail.services.serve.statements.results import Piece, pieces
from dovetail.services.serve.statements.script import script_of
from dovetail.services.serve.statements.statement_pool import PooledSession
from dovetail.services.serve.streamed import Streamed

_ARGUMENT = {
    "oneOf": [
        {"type": ["string", "number", "boolean", "null"]},
        *(
            {
                "type": "object",
                "required": [kind],
                "additionalProperties": False,
                "properties": {kind: {"type": "string"}},
            }
            for kind in TYPED
        ),
    ]
}
_SCRIPT = {
    "type": "object",
    "required": ["sql"],
    "additionalProperties": False,
    "properties": {
        "sql": {"type": "string", "description": "statements, with ; between them"},
        "agree": {"type": "boolean", "description": "DROP .. CASCADE may drop all that it drops"},
        "until_idle": {
            "type": "boolean",
            "description": "a streaming SELECT ends when the input there is was answered",
        },
        "single": {
            "type": "boolean",
            "description": "more than one statement is refused: for a text that something was filled into",
        },
        "arguments": {
            "description": "the values of ? in their order, or of :name by name",
            "oneOf": [
                {"type": "array", "items": _ARGUMENT},
                {"type": "object", "additionalProperties": _ARGUMENT},
            ],
        },
    },
}


async def run_sql(request: Request) -> Response:
    """The first result has to be there before the answer begins: until then an error is a status of its own."""
    service, user = service_of(request), user_of(request)
    form = accepted(request, (NDJSON, ARROW))
    script = await script_of(request, service.settings)

    def make(seat: PooledSession, over: Event) -> Generator[Piece, None, None]:
        statements = script.statements(user)
        if form == ARROW:
            expect_rows(statements)
        return pieces(seat.session, statements, seat.notes, over, until_idle=script.until_idle)

    found = service.desk.pieces(user, make, agree=script.agree)
    begun = _from(await anext(found), found)
    allowance = service.allowance()
    chunks = arrow_stream(begun, allowance) if form == ARROW else json_lines(begun, allowance, place_of(request))
    return Streamed(_closing(chunks, found), service.settings.serve_send_s, form)


async def _from(first: Piece, others: AsyncIterator[Piece]) -> AsyncIterator[Piece]:
    yield first
    async for piece in others:
        yield piece


async def _closing(
    chunks: AsyncGenerator[bytes, None], found: AsyncGenerator[Piece, None]
) -> AsyncGenerator[bytes, None]:
    """Whoever goes away takes the streaming query along that makes the rows."""
    async with aclosing(found), aclosing(chunks):
        async for chunk in chunks:
            yield chunk


SQL = Endpoint(
    "POST",
    "/v1/sql",
    "Run statements. What a statement needs, its user must be: reader, writer or admin.",
    run_sql,
    body={"text/plain": {"type": "string"}, "application/sql": {"type": "string"}, JSON: _SCRIPT},
    answers={NDJSON: "a line for each result, row, end or error", ARROW: "the rows of one statement"},
)
ROUTES = (SQL,)
