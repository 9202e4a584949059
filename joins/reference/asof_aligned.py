"""The one-shot ASOF join with alignment, by definition: each left row once, when the right watermark has passed its
time by the lag, with the nearest of the right rows that are kept then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dovetail.joins.dataflow.ports import JoinKind, refuse_other_kinds
from dovetail.joins.reference.arrival import Arrived, RowCondition, always, nearest
from dovetail.joins.reference.rows import HOLDS, Record, Row, part


@dataclass
class ReferenceAsofAligned:
    """One-shot ASOF with alignment: ``times`` are the positions of the times, in left and right rows.

    A left row waits until the right watermark has passed its time by ``lag``. Of each key the ``keep_versions`` newest
    rows are kept, and those that the oldest left row that waits may ask for: from its time on, and looking back the
    ``keep_versions`` newest before it. They are counted when rows of the key have come, or were answered.
    """

    kind: JoinKind
    left_key: tuple[int, ...]
    right: Arrived
    widths: tuple[int, int]
    times: tuple[int, int]
    comparison: str
    keep_versions: int
    lag: int
    condition: RowCondition = always
    _waiting: list[Row] = field(default_factory=list)

    def __post_init__(self) -> None:
        refuse_other_kinds(self, self.kind, (JoinKind.INNER, JoinKind.LEFT))

    def on_batch(self, left: Sequence[Record], right: Sequence[Record]) -> Counter[Row]:
        rows = [row for row, _ in left]
        self._waiting += [row for row in rows if row[self.times[0]] is not None]
        self.right.take(right)
        self._settle({part(row, self.right.key) for row, _ in right})
        return self._answered([row for row in rows if row[self.times[0]] is None])

    def on_watermark(self, watermarks: tuple[int | None, int | None]) -> Counter[Row]:
        reached = watermarks[1]
        ready = [row for row in self._waiting if reached is not None and reached >= self._time(row) + self.lag]
        self._waiting = [row for row in self._waiting if row not in ready]
        return self._answered(ready)

    def _answered(self, rows: Sequence[Row]) -> Counter[Row]:
        result: Counter[Row] = Counter()
        for row in rows:
            versions = self.right.under(part(row, self.left_key))
            fitting = [version for version in versions if self.condition(row, version)]
            match = nearest(row[self.times[0]], fitting, self.times[1], self.comparison)
            if match is not None:
                result[row + match] += 1
            elif self.kind is JoinKind.LEFT:
                result[row + (None,) * self.widths[1]] += 1
        self._settle({part(row, self.left_key) for row in rows})
        return result

    def _settle(self, keys: Iterable[Row]) -> None:
        for key in keys:
            times: list[Any] = [row[self.times[1]] for row in self.right.under(key)]
            known = sorted(time for time in times if time is not None)
            waiting = [self._time(row) for row in self._waiting if part(row, self.left_key) == key]
            first = len(known) - self.keep_versions
            if waiting and self.comparison in (">=", ">"):
                before = [time for time in known if HOLDS[self.comparison](min(waiting), time)]
                first = min(first, len(before) - self.keep_versions)
            elif waiting:
                first = min(first, sum(not HOLDS[self.comparison](min(waiting), time) for time in known))
            self._forget(key, known[: max(first, 0)])

    def _forget(self, key: Row, gone: list[Any]) -> None:
        """Take the first to arrive of each of these times away, and the rows without a time."""
        for row in self.right.under(key):
            if row[self.times[1]] in gone:
                gone.remove(row[self.times[1]])
                self.right.rows.remove(row)

    def _time(self, row: Row) -> Any:
        return row[self.times[0]]
