"""The event-time temporal join, by definition: each left row once, when both watermarks have passed it, with the
version of its key that is the newest not after it; a retraction takes the answer back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dovetail.joins.dataflow.ports import JoinKind, refuse_other_kinds
from dovetail.joins.reference.arrival import Arrived, RowCondition, always, nearest
from dovetail.joins.reference.rows import Record, Row, difference, part


@dataclass
class ReferenceTemporal:
    """The event-time temporal join. ``deleted``: the position, in a right row, of what marks a version as deleted."""

    kind: JoinKind
    left: Arrived
    versions: Arrived
    widths: tuple[int, int]
    times: tuple[int, int]
    deleted: int | None = None
    condition: RowCondition = always
    _answers: list[tuple[Row, Row | None]] = field(default_factory=list)
    _result: Counter[Row] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        refuse_other_kinds(self, self.kind, (JoinKind.INNER, JoinKind.LEFT))

    def on_batch(self, left: Sequence[Record], right: Sequence[Record]) -> Counter[Row]:
        """What is taken back, and what will never have a version."""
        self.left.take(left)
        self.versions.take(right)
        unmet = Counter(self.left.rows)
        kept: list[tuple[Row, Row | None]] = []
        for row, version in self._answers:
            if unmet[row] > 0:
                unmet[row] -= 1
                kept.append((row, version))
        timeless = [row for row in unmet.elements() if row[self.times[0]] is None]
        self._answers = kept + [(row, None) for row in timeless]
        return self._changes()

    def on_watermark(self, watermarks: tuple[int | None, int | None]) -> Counter[Row]:
        left, right = watermarks
        if left is None or right is None:
            return Counter()
        waiting = Counter(self.left.rows)
        waiting.subtract(row for row, _ in self._answers)
        for row in waiting.elements():
            time: Any = row[self.times[0]]
            if time is not None and time < min(left, right):
                self._answers.append((row, self._version(row)))
        return self._changes()

    def _version(self, row: Row) -> Row | None:
        versions = self.versions.under(part(row, self.left.key))
        found = nearest(row[self.times[0]], versions, self.times[1], ">=")
        ended = found is not None and self.deleted is not None and found[self.deleted] is True
        return found if found is not None and not ended and self.condition(row, found) else None

    def _changes(self) -> Counter[Row]:
        result: Counter[Row] = Counter()
        for row, version in self._answers:
            if version is not None:
                result[row + version] += 1
            elif self.kind is JoinKind.LEFT:
                result[row + (None,) * self.widths[1]] += 1
        before, self._result = self._result, result
        return difference(result, before)
