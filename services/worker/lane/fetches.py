"""A fetch: the records that one request gave for one partition. It travels through Faust as a single event."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import faust
import pyarrow as pa

from dovetail.broker.reader import HEADED, RECORDS
from dovetail.changelog.formats.record_parts import HEADERS_TYPE


class Record(Protocol):
    """A record as the consumer gives it."""

    @property
    def key(self) -> bytes | None: ...

    @property
    def value(self) -> bytes | None: ...

    @property
    def timestamp(self) -> int: ...

    @property
    def offset(self) -> int: ...

    @property
    def headers(self) -> Sequence[tuple[str, bytes | None]]: ...


@dataclass(frozen=True, slots=True)
class Fetch:
    """The records of ``partition`` from ``start`` up to ``end``, where the next fetch starts.

    There may be fewer records than offsets, even none: the others are marks of transactions, or were taken back.
    """

    partition: int
    start: int
    end: int
    records: Sequence[Record]

    def after(self, offset: int) -> Fetch:
        """What of it is not before ``offset``."""
        if offset <= self.start:
            return self
        return Fetch(self.partition, offset, self.end, [record for record in self.records if record.offset >= offset])


def as_batch(partition: int, records: Sequence[Record], *, headed: bool) -> pa.RecordBatch:
    """What a decoder takes: RECORDS, or HEADED."""
    columns = [
        pa.array([record.key for record in records], pa.binary()),
        pa.array([record.value for record in records], pa.binary()),
        pa.array([record.timestamp for record in records], pa.int64()).cast(RECORDS.field("timestamp").type),
        pa.repeat(pa.scalar(partition, pa.int32()), len(records)),
        pa.array([record.offset for record in records], pa.int64()),
    ]
    if not headed:
        return pa.RecordBatch.from_arrays(columns, schema=RECORDS)
    headers = pa.array([[*record.headers] for record in records], HEADERS_TYPE)
    return pa.RecordBatch.from_arrays([*columns, headers], schema=HEADED)


class FetchSchema(faust.Schema[Any, Any]):
    """Gives a fetch on as it is: records are decoded in the lane, all at once."""

    def compile(
        self,
        app: Any,
        *,
        on_key_decode_error: Any = None,
        on_value_decode_error: Any = None,
        default_propagate: bool = False,
    ) -> Any:
        create = app.create_event

        async def decode(message: Any, *, propagate: bool = default_propagate) -> Coroutine[Any, Any, Any]:
            event: Coroutine[Any, Any, Any] = create(None, message.value, None, message)
            return event

        return decode
