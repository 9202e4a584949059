"""The updating ASOF join, by definition: each left row with the one right row of its key that is nearest to it in
time, on the side that the comparison looks to, within the tolerance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from dovetail.joins.dataflow.ports import JoinKind, refuse_other_kinds
from dovetail.joins.reference.arrival import Arrived, nearest
from dovetail.joins.reference.rows import Record, Row, difference, part


@dataclass
class ReferenceAsofUpdating:
    """The updating ASOF join. ``times`` and ``tie_break`` are positions in left and right, and in right rows."""

    kind: JoinKind
    left: Arrived
    right: Arrived
    widths: tuple[int, int]
    times: tuple[int, int]
    comparison: str
    tie_break: tuple[int, ...] = ()
    tolerance: int | None = None
    null_safe: tuple[bool, ...] = ()
    _result: Counter[Row] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        refuse_other_kinds(self, self.kind, (JoinKind.INNER, JoinKind.LEFT))

    def on_batch(self, left: Sequence[Record], right: Sequence[Record]) -> Counter[Row]:
        """The net changes of the output: row to signed count, without zeros."""
        self.left.take(left)
        self.right.take(right)
        before, self._result = self._result, self._joined()
        return difference(self._result, before)

    def _joined(self) -> Counter[Row]:
        result: Counter[Row] = Counter()
        for row in self.left.rows:
            match = self._nearest(row)
            if match is not None:
                result[row + match] += 1
            elif self.kind is JoinKind.LEFT:
                result[row + (None,) * self.widths[1]] += 1
        return result

    def _nearest(self, row: Row) -> Row | None:
        others = self.right.under(part(row, self.left.key), self.null_safe)
        return nearest(row[self.times[0]], others, self.times[1], self.comparison, self.tie_break, self.tolerance)
