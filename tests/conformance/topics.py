"""Topics in memory: lists of records, read as the batches that a decoder takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from dovetail.broker.reader import HEADED
from dovetail.joins.dataflow.graph import TopicScan
from tests.conformance.records import Record

_FIRST_TIME_MS = 100_000_000_000
"""A number below is an offset, from it on a time in ms."""


@dataclass
class Topic:
    """One partition of records, from offset 0."""

    records: list[Record] = field(default_factory=list)

    @property
    def end(self) -> int:
        return len(self.records)

    def append(self, records: Iterable[Record]) -> None:
        self.records.extend(records)

    def start_of(self, scan: TopicScan) -> int:
        """The offset of the first record that a fresh start of ``scan`` reads."""
        wish = scan.start_offsets or ("latest" if scan.starts_latest else "earliest")
        if wish in ("earliest", "latest"):
            return 0 if wish == "earliest" else self.end
        if int(wish) < _FIRST_TIME_MS:
            return int(wish)
        later = (at for at, record in enumerate(self.records) if record.timestamp_ms >= int(wish))
        return next(later, self.end)


def as_batch(records: Sequence[Record], start: int = 0) -> pa.Table:
    """The records of a partition from offset ``start`` on, as a decoder takes them."""
    taken = records[start:]
    columns = [
        [record.key for record in taken],
        [record.value for record in taken],
        [record.timestamp_ms for record in taken],
        [0] * len(taken),
        range(start, len(records)),
        [[]] * len(taken),
    ]
    return pa.table([pa.array(c, kind) for c, kind in zip(columns, HEADED.types, strict=True)], schema=HEADED)
