"""``POST /v1/sql``: statements, and their results."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import aclosing
from threading import Event

from fastapi import APIRouter, Request, Response

from dovetail.services.serve.dependencies import SCRIPT_DESCRIBED, Reader, TheScript, TheService
from dovetail.services.serve.refusals import place_of
from dovetail.services.serve.statements.accepted import accepted
from dovetail.services.serve.statements.arrow_stream import ARROW, arrow_stream, expect_rows
from dovetail.services.serve.statements.json_lines import NDJSON, json_lines
from dovetail.services.serve.statements.results import Piece, pieces
from dovetail.services.serve.statements.statement_pool import PooledSession
from dovetail.services.serve.streamed import Streamed

ROUTER = APIRouter()
_ANSWERS = {NDJSON: "a line for each result, row, end or error", ARROW: "the rows of one statement"}


@ROUTER.post(
    "/v1/sql",
    summary="Run statements. What a statement needs, its user must be: reader, writer or admin.",
    openapi_extra=SCRIPT_DESCRIBED,
    response_class=Response,
    responses={200: {"description": "; ".join(_ANSWERS.values()), "content": {kind: {} for kind in _ANSWERS}}},
)
async def run_sql(request: Request, service: TheService, user: Reader, script: TheScript) -> Response:
    # The first result has to be there before the answer begins: until then an error is a status of its own.
    form = accepted(request, (NDJSON, ARROW))

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
