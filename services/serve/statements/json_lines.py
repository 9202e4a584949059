"""Results as JSON lines: an object a line, with one member that says what it is.

    {"result": {"statement": 1, "kind": "rows", "columns": [{"name": "id", "type": "int64"}]}}
    {"row": {"id": 1}}
    {"end": {"statement": 1, "rows": 1, "complete": true}}

kind       ``rows``, ``changelog``, ``text``, ``done``; the last two have a ``text`` instead of columns
complete   false: there are more rows; ``why`` says what has cut them off
error      what, where and fix; the statements after it are not run
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from http import HTTPStatus
from typing import Any

import orjson
import pyarrow as pa

from dovetail.changelog.errors import DovetailError
from dovetail.changelog.formats import json_text
from dovetail.services.serve.refusals import account_of, status_of
from dovetail.services.serve.statements.bounds import Allowance
from dovetail.services.serve.statements.results import Begun, Finished, Piece, RowsPiece
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.types import display

NDJSON = "application/x-ndjson"
_ROWS = 500
"""So many are written before other requests have their turn."""


def columns_of(schema: pa.Schema) -> list[dict[str, str]]:
    return [{"name": field.name, "type": display(field.type, Rules.TIMEPLUS)} for field in schema]


async def json_lines(pieces: AsyncIterator[Piece], allowance: Allowance, place: str) -> AsyncGenerator[bytes, None]:
    """Errors become the last line: the answer has begun when they come."""
    lines = _Lines(allowance)
    try:
        async for piece in pieces:
            async for chunk in lines.of(piece):
                yield chunk
            if allowance.why:
                break
    except DovetailError as error:
        ended = lines.kind == "changelog" and status_of(error) == HTTPStatus.GATEWAY_TIMEOUT
        yield lines.end(error.what) if ended else _line({"error": account_of(error, place)})
        return
    if allowance.why:
        yield lines.end(allowance.why)


class _Lines:
    """The lines of one result after the other."""

    def __init__(self, allowance: Allowance) -> None:
        self._allowance = allowance
        self._number = 0
        self._rows = 0
        self.kind = ""

    async def of(self, piece: Piece) -> AsyncGenerator[bytes, None]:
        match piece:
            case Begun():
                yield self._begin(piece)
            case RowsPiece():
                async for chunk in self._portion(piece.rows):
                    yield chunk
            case Finished():
                yield self.end("", piece.notes)

    def _begin(self, begun: Begun) -> bytes:
        self._number, self._rows, self.kind = begun.number, 0, begun.kind
        members: dict[str, Any] = {"statement": begun.number, "kind": begun.kind}
        members |= {"text": begun.text} if begun.schema is None else {"columns": columns_of(begun.schema)}
        return _line({"result": members | ({"notes": begun.notes} if begun.notes else {})})

    async def _portion(self, rows: pa.Table) -> AsyncGenerator[bytes, None]:
        for start in range(0, rows.num_rows, _ROWS):
            part = rows.slice(start, _ROWS)
            given = self._allowance.share(part)
            chunk = "".join(f'{{"row":{row}}}\n' for row in json_text.objects(given)).encode()
            self._allowance.take(part.num_rows, len(chunk))
            self._rows += given.num_rows
            yield chunk
            if self._allowance.why:
                return
            await asyncio.sleep(0)

    def end(self, why: str, notes: tuple[str, ...] = ()) -> bytes:
        members: dict[str, Any] = {"statement": self._number, "rows": self._rows, "complete": not why}
        return _line({"end": members | ({"why": why} if why else {}) | ({"notes": notes} if notes else {})})


def _line(members: dict[str, Any]) -> bytes:
    return orjson.dumps(members) + b"\n"
