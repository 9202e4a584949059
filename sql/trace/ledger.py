"""The records that a trace has looked at, numbered, and what became of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pyarrow as pa

from dovetail.changelog.schema import EVENT_TIME_TYPE

LINES = pa.schema(
    [
        ("stream", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("time", EVENT_TIME_TYPE),
        ("op", pa.string()),
        ("values", pa.string()),
        ("reason", pa.string()),
    ]
)
"""A record, or with neither partition nor offset something that is true of an input as a whole.

op       +1, -1, upsert, delete
values   the columns that the view reads, as JSON; of a record that cannot be read its bytes
reason   why no row came of it
"""


@dataclass(frozen=True)
class TracedRecord:
    """``time_ms``: the timestamp of the record."""

    alias: str
    stream: str
    topic: str
    partition: int
    offset: int
    time_ms: int
    op: str
    values: str

    @property
    def place(self) -> str:
        return f"{self.topic}[{self.partition}] offset {self.offset}"

    @property
    def arrived(self) -> tuple[int, int, int]:
        return self.time_ms, self.partition, self.offset

    def line(self, reason: str | None) -> dict[str, Any]:
        known = {"stream": self.stream, "topic": self.topic, "partition": self.partition, "offset": self.offset}
        return {**known, "time": self.time_ms, "op": self.op, "values": self.values, "reason": reason}


@dataclass
class Ledger:
    """``records`` by their numbers; ``reasons``: number → why a row made of it did not go on, the first one first;
    ``remarks``: scan → what is true of it as a whole.
    """

    records: list[TracedRecord] = field(default_factory=list)
    reasons: dict[int, dict[str, None]] = field(default_factory=dict)
    remarks: dict[tuple[str, str, str], dict[str, None]] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    _numbers: dict[tuple[str, int, int], int] = field(default_factory=dict)

    def number(self, record: TracedRecord) -> int:
        """The number of a record, the same whenever its scan gives it."""
        known = (record.alias, record.partition, record.offset)
        if known not in self._numbers:
            self._numbers[known] = len(self.records)
            self.records.append(record)
        return self._numbers[known]

    def lost(self, numbers: Iterable[int], reason: str) -> None:
        for number in numbers:
            self.reasons.setdefault(number, {})[reason] = None

    def remark(self, alias: str, stream: str, topic: str, text: str) -> None:
        self.remarks.setdefault((alias, stream, topic), {})[text] = None

    def note(self, text: str) -> None:
        self.notes[text] = None

    def arrived(self, numbers: Iterable[int]) -> tuple[int, int, int]:
        """When the last of the records of a row came: its time, and its place."""
        return max((self.records[number].arrived for number in numbers), default=(0, 0, 0))

    def lines_of(self, numbers: Iterable[int]) -> pa.Table:
        """LINES of some records, each place once."""
        found = {(one.topic, one.partition, one.offset): one for one in map(self.records.__getitem__, sorted(numbers))}
        return _lines([one.line(None) for one in sorted(found.values(), key=_order)])

    def lines_of_losses(self) -> pa.Table:
        """LINES of all that did not go on, input by input."""
        lost: dict[tuple[str, int, int], tuple[TracedRecord, dict[str, None]]] = {}
        for number, reasons in self.reasons.items():
            record = self.records[number]
            place = (record.topic, record.partition, record.offset)
            lost.setdefault(place, (record, {}))[1].update(reasons)
        lines = [
            {"stream": stream, "topic": topic, "reason": text}
            for (_, stream, topic), texts in self.remarks.items()
            for text in texts
        ]
        ordered = sorted(lost.values(), key=lambda one: _order(one[0]))
        return _lines([*lines, *(record.line("; ".join(reasons)) for record, reasons in ordered)])


def _order(record: TracedRecord) -> tuple[str, int, int, int]:
    return record.stream, record.time_ms, record.partition, record.offset


def _lines(rows: list[dict[str, Any]]) -> pa.Table:
    columns = {name: [row.get(name) for row in rows] for name in LINES.names}
    times = pa.array(columns.pop("time"), pa.int64()).cast(EVENT_TIME_TYPE)
    arrays = [times if name == "time" else pa.array(columns[name], LINES.field(name).type) for name in LINES.names]
    return pa.table(arrays, schema=LINES)


def as_json(row: Mapping[str, object]) -> str:
    """The values of a row that are not NULL."""
    known = {name: value for name, value in row.items() if value is not None}
    return json.dumps(known, default=_text, ensure_ascii=False)


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat(" ", timespec="milliseconds" if value.microsecond else "seconds").removesuffix("+00:00")
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
