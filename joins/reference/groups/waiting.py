"""Rows that wait, by definition: those that are there, until a watermark passes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dovetail.joins.reference.rows import Record, Row
from dovetail.joins.reference.side import ReferenceSide


@dataclass
class ReferenceWaiting:
    """``time`` is a position in a row, a whole number there or NULL."""

    side: ReferenceSide
    time: int

    def on_batch(self, records: Sequence[Record]) -> None:
        self.side.take(records)

    def on_watermark(self, watermark: int) -> Counter[Row]:
        """What leaves when no row before ``watermark`` can come."""
        times = {row: row[self.time] for row in self.side.content}
        passed = {row for row, time in times.items() if isinstance(time, int) and time < watermark}
        left = Counter({row: self.side.content[row] for row in passed})
        self.side.content -= left
        return left
