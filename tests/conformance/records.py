"""The rows of a case as the Kafka records that a producer of their table would send (docs/topics.md)."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dovetail.changelog.schema import TIME, Kind, StreamSchema
from tests.conformance.case import Row
from tests.conformance.engine import NotRunnable

WIRE_DELTA = "_tp_delta"


@dataclass(frozen=True)
class Record:
    key: bytes | None
    value: bytes | None
    timestamp_ms: int


def inserted(stream: StreamSchema, rows: Sequence[Row]) -> Iterator[Record]:
    """A record for each row; into an upsert stream a row with ``_tp_delta`` -1 is a delete."""
    for row in rows:
        delta = int(str(row.get(WIRE_DELTA, 1)))
        yield _tombstone(stream, row) if delta < 0 and stream.kind is Kind.UPSERT else _record(stream, row, delta)


def deleted(stream: StreamSchema, rows: Sequence[Row]) -> Iterator[Record]:
    """A tombstone for each row of an upsert stream, a retraction for each row of a changelog."""
    _demand_retractions(stream)
    for row in rows:
        yield _tombstone(stream, row) if stream.kind is Kind.UPSERT else _record(stream, row, -1)


def updated(stream: StreamSchema, pairs: Sequence[tuple[Row, Row]]) -> Iterator[Record]:
    """An upsert of the new row, after a tombstone if its key is new; in a changelog the old row is retracted."""
    _demand_retractions(stream)
    for old, new in pairs:
        if stream.kind is not Kind.UPSERT:
            yield _record(stream, old, -1)
        elif _key(stream, old) != _key(stream, new):
            yield _tombstone(stream, old)
        yield _record(stream, new, 1)


def _demand_retractions(stream: StreamSchema) -> None:
    if stream.kind is Kind.APPEND:
        raise NotRunnable(f"{stream.name} is append-only: it takes no update and no delete")


def _record(stream: StreamSchema, row: Row, delta: int) -> Record:
    fields = {name: value for name, value in row.items() if name not in (TIME, WIRE_DELTA)}
    if stream.kind in (Kind.CHANGELOG, Kind.CHANGELOG_KV):
        fields[WIRE_DELTA] = delta
    return Record(_key(stream, row), _json(fields), _timestamp_ms(row))


def _tombstone(stream: StreamSchema, row: Row) -> Record:
    return Record(_key(stream, row), None, _timestamp_ms(row))


def _key(stream: StreamSchema, row: Row) -> bytes | None:
    if not stream.primary_key:
        return None
    return _json({name: row.get(name) for name in stream.primary_key})


def _json(fields: Row) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode()


def _timestamp_ms(row: Row) -> int:
    """``_tp_time`` travels as the timestamp of the record; a row without one happens now."""
    text = row.get(TIME)
    if text is None:
        return time.time_ns() // 1_000_000
    moment = dt.datetime.fromisoformat(str(text)).replace(tzinfo=dt.UTC)
    return round(moment.timestamp() * 1000)


def decoded(value: bytes) -> tuple[dict[str, object], int]:
    """An output record's row and its count; a record of an append output has none, and counts +1."""
    fields: dict[str, object] = json.loads(value)
    delta = fields.pop(WIRE_DELTA, 1)
    return fields, int(str(delta))
