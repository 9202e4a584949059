"""The result of one statement as an Arrow IPC stream.

Its last batch is empty; the metadata of that batch say whether the rows are all there are: ``complete`` (``true``,
``false``), and ``why`` not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence

import pyarrow as pa

from dovetail.changelog.errors import DovetailError
from dovetail.services.serve.refusals import RequestRefused
from dovetail.services.serve.statements.bounds import Allowance
from dovetail.services.serve.statements.results import Begun, Piece, RowsPiece
from dovetail.sql.syntax.statements import Describe, Print, Select, Show, Statement, opening_words

ARROW = "application/vnd.apache.arrow.stream"
_ROWS = 10_000
_FIX = "ask for application/x-ndjson (header Accept), or send one SELECT, SHOW, DESCRIBE or PRINT"


def expect_rows(statements: Sequence[Statement]) -> None:
    """Raises RequestRefused where they are not one statement that gives rows."""
    if len(statements) != 1:
        raise RequestRefused(f"an Arrow stream has one result, not {len(statements)}", where="header Accept", fix=_FIX)
    if not isinstance(statements[0], Select | Show | Describe | Print):
        what = f"{opening_words(statements[0])} gives no rows, and an Arrow stream consists of rows"
        raise RequestRefused(what, where="header Accept", fix=_FIX)


async def arrow_stream(pieces: AsyncIterator[Piece], allowance: Allowance) -> AsyncGenerator[bytes, None]:
    """The one result; an error on the way is why it is not complete."""
    begun = await anext(pieces)
    assert isinstance(begun, Begun)
    stream = _Stream(begun.schema, allowance)
    why = ""
    yield stream.taken()
    try:
        async for piece in pieces:
            for chunk in stream.of(piece):
                yield chunk
                await asyncio.sleep(0)
            if allowance.why:
                break
    except DovetailError as error:
        why = str(error)
    yield stream.end(why or allowance.why)


class _Stream:
    """Takes batches, and gives what is to be sent."""

    def __init__(self, schema: pa.Schema, allowance: Allowance) -> None:
        self._schema = schema
        self._allowance = allowance
        self._sink = _Sink()
        self._writer = pa.ipc.new_stream(pa.PythonFile(self._sink, mode="w"), schema)

    def of(self, piece: Piece) -> Iterator[bytes]:
        rows = piece.rows if isinstance(piece, RowsPiece) else self._schema.empty_table()
        for start in range(0, rows.num_rows, _ROWS):
            part = rows.slice(start, _ROWS)
            self._writer.write_table(self._allowance.share(part))
            chunk = self.taken()
            self._allowance.take(part.num_rows, len(chunk))
            yield chunk
            if self._allowance.why:
                return

    def end(self, why: str) -> bytes:
        metadata = {"complete": "false", "why": why} if why else {"complete": "true"}
        self._writer.write_batch(pa.RecordBatch.from_pylist([], schema=self._schema), custom_metadata=metadata)
        self._writer.close()
        return self.taken()

    def taken(self) -> bytes:
        return self._sink.taken()


class _Sink:
    """A file whose content is taken away as it comes."""

    closed = False

    def __init__(self) -> None:
        self._chunks: list[bytes] = []

    def write(self, chunk: bytes) -> int:
        self._chunks.append(bytes(chunk))
        return len(chunk)

    def flush(self) -> None:
        """Nothing waits anywhere else."""

    def close(self) -> None:
        """What was written is still to be taken."""

    def taken(self) -> bytes:
        chunk, self._chunks = b"".join(self._chunks), []
        return chunk
