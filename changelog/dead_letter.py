"""The dead-letter record of a record that could not be used: its own key and value, and in headers where and why.

Written by all that reject records, and read back as rows. What a replay has put back is told by a **mark**: a record
of the same topic and partition without key and value, whose one header holds the offsets of those letters. It stands
behind them, so whatever retention takes away, it takes them before their mark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.encodings.message_sizes import MESSAGE_BYTES, message_size
from dovetail.changelog.errors import shortened
from dovetail.changelog.formats.time_range import bounded
from dovetail.changelog.schema import EVENT_TIME_TYPE

SUFFIX = ".dead_letter"
Headers = tuple[tuple[str, bytes], ...]
TOPIC, PARTITION, OFFSET = "dovetail.topic", "dovetail.partition", "dovetail.offset"
TIMESTAMP, REASON, QUERY, BYTES = "dovetail.timestamp", "dovetail.reason", "dovetail.query", "dovetail.bytes"
REPLAYED = "dovetail.replayed"

_HEADER_BYTES = 4096
"""More than a reason, the names of a topic and a query, and numbers take."""
BRIEF = 0
"""As ``dead_letter_bytes``: a dead letter of place and reason only."""

DEAD_LETTER_SCHEMA = pa.schema(
    [
        ("source_topic", pa.string()),
        ("source_partition", pa.int32()),
        ("source_offset", pa.int64()),
        ("source_time", EVENT_TIME_TYPE),
        ("rejected_at", EVENT_TIME_TYPE),
        ("query", pa.string()),
        ("whole_bytes", pa.int64()),
        ("reason", pa.string()),
        ("key", pa.string()),
        ("value", pa.string()),
    ]
)
"""Dead letters as rows. ``whole_bytes``: the size of the record where the letter holds its beginning only, else NULL.

Of a row that its output topic did not take, nothing but that topic is known.
"""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """``key`` and ``value`` are the original bytes, or how they begin."""

    key: bytes | None
    value: bytes | None
    headers: Headers

    @property
    def message(self) -> dict[str, Any]:
        return {"key": self.key, "value": self.value, "headers": list(self.headers)}


def topic_of(query: str) -> str:
    """The dead-letter topic of a query."""
    return f"{query}{SUFFIX}"


def is_dead_letter_topic(topic: str) -> bool:
    """Whether a topic is one of dead letters, by its name."""
    return topic.endswith(SUFFIX) and topic != SUFFIX


def to_dead_letters(
    rejected: pa.Table, *, topic: str, query: str, dead_letter_bytes: int = MESSAGE_BYTES
) -> Iterator[DeadLetter]:
    """One for each row of ``rejected`` (``decode.REJECTED``), records of ``topic`` read by ``query``.

    dead_letter_bytes   the most that the topic of dead letters takes; or BRIEF
    """
    timestamps = rejected.column("timestamp").cast(pa.int64()).to_pylist()
    for record, timestamp in zip(rejected.drop_columns(["timestamp"]).to_pylist(), timestamps, strict=True):
        headers = {
            TOPIC: topic,
            PARTITION: str(record["partition"]),
            OFFSET: str(record["offset"]),
            TIMESTAMP: str(timestamp),
            REASON: record["reason"],
            QUERY: query,
        }
        yield _to_dead_letter(record["key"], record["value"], headers, dead_letter_bytes)


def row_too_large(
    key: bytes | None, value: bytes | None, *, topic: str, query: str, reason: str, dead_letter_bytes: int
) -> DeadLetter:
    """That of a row which ``query`` made, and its output ``topic`` did not take: it has no place in any topic."""
    return _to_dead_letter(key, value, {TOPIC: topic, REASON: reason, QUERY: query}, dead_letter_bytes)


def _to_dead_letter(
    key: bytes | None, value: bytes | None, headers: dict[str, str], dead_letter_bytes: int
) -> DeadLetter:
    """The letter, or how it begins, where even the topic of the dead letters does not take it whole."""
    size = message_size(key, value)
    headers = {**headers, REASON: shortened(headers[REASON])}
    if size + _HEADER_BYTES > dead_letter_bytes:
        part = max(dead_letter_bytes - _HEADER_BYTES, 0) // 2
        key, value = key and key[:part], value and value[:part]
        headers = {**headers, BYTES: str(size)}
    return DeadLetter(key, value, tuple((name, text.encode()) for name, text in headers.items()))


def dead_letter_rows(records: pa.Table) -> pa.Table:
    """DEAD_LETTER_SCHEMA of records of a dead-letter topic (``timestamp``, ``headers``, ..), marks left out."""
    return as_rows(without_marks(records))


def without_marks(records: pa.Table) -> pa.Table:
    return records.filter(pc.invert(_is_mark(records)))


def _is_mark(records: pa.Table) -> pa.ChunkedArray:
    return pc.is_valid(header(records, REPLAYED))


def as_rows(dead_letters: pa.Table) -> pa.Table:
    """DEAD_LETTER_SCHEMA of records without marks. What is not as it should be, or a time of no row, is NULL."""
    columns = [
        text(header(dead_letters, TOPIC)),
        _number(dead_letters, PARTITION, pa.int32()),
        _number(dead_letters, OFFSET, pa.int64()),
        bounded(_number(dead_letters, TIMESTAMP, pa.int64()).cast(EVENT_TIME_TYPE))[0],
        bounded(dead_letters.column("timestamp").cast(EVENT_TIME_TYPE))[0],
        text(header(dead_letters, QUERY)),
        _number(dead_letters, BYTES, pa.int64()),
        text(header(dead_letters, REASON)),
        text(dead_letters.column("key")),
        text(dead_letters.column("value")),
    ]
    return pa.table(columns, schema=DEAD_LETTER_SCHEMA)


def replayed_offsets(records: pa.Table) -> Iterator[tuple[int, int, list[tuple[int, int]]]]:
    """Partition, time in ms and ranges of offsets, both ends included, of each mark among ``records``."""
    marks = records.filter(_is_mark(records))
    times = marks.column("timestamp").cast(EVENT_TIME_TYPE).cast(pa.int64())
    columns = (marks.column("partition"), times, header(marks, REPLAYED))
    for partition, at_ms, ranges in zip(*(column.to_pylist() for column in columns), strict=True):
        yield partition, at_ms, [_range(part) for part in ranges.decode().split(",")]


def mark(offsets: list[int]) -> dict[str, Any]:
    """The message that tells of dead letters that were put back: ``3-7,9``. ``offsets`` ascend."""
    ranges: list[list[int]] = []
    for offset in offsets:
        if ranges and ranges[-1][1] == offset - 1:
            ranges[-1][1] = offset
        else:
            ranges.append([offset, offset])
    spans = ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
    return {"key": None, "value": None, "headers": [(REPLAYED, spans.encode())]}


def _range(part: str) -> tuple[int, int]:
    first, _, last = part.partition("-")
    return int(first), int(last or first)


def text(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Bytes as text; what is not UTF-8 in them is shown as such."""
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        read = [None if value is None else value.decode(errors="replace") for value in values.to_pylist()]
        return pa.chunked_array([pa.array(read, pa.string())])


def header(records: pa.Table, name: str) -> pa.ChunkedArray:
    """The header of this name of each record, as bytes; NULL where it has none."""
    return pc.map_lookup(records.column("headers"), query_key=name, occurrence="last")


def _number(records: pa.Table, name: str, kind: pa.DataType) -> pa.ChunkedArray:
    digits = text(header(records, name))
    whole = pc.match_substring_regex(digits, r"^\d{1,9}$" if kind == pa.int32() else r"^\d{1,18}$")
    return pc.if_else(whole, digits, None).cast(kind)
