"""The range join, by definition: every pair of equal keys whose times are no further apart than the band; outer kinds
add the rows in no pair. Rows go with the watermarks, and what they gave stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dovetail.joins.dataflow.ports import Ingest, JoinKind, refuse_other_kinds
from dovetail.joins.reference.rows import Record, Row, difference, keys_equal
from dovetail.joins.reference.side import ReferenceSide

_OF_LEFT = (JoinKind.LEFT, JoinKind.FULL, JoinKind.ANTI)
_OF_RIGHT = (JoinKind.RIGHT, JoinKind.FULL)
_LEFT_ONLY = (JoinKind.SEMI, JoinKind.ANTI)


@dataclass
class ReferenceRange:
    """``lower <= left time - right time <= upper``; ``times``: the positions of the times in left and right rows.

    The whole output is derived from the rows held, and what was derived from those that have gone is kept. A row that
    matched one that has gone is settled: it counts as matched forever.
    """

    kind: JoinKind
    left: ReferenceSide
    right: ReferenceSide
    widths: tuple[int, int]
    times: tuple[int, int]
    lower: int | None
    upper: int | None
    null_safe: tuple[bool, ...] = ()
    condition: Callable[[Row, Row], bool] = lambda left, right: True
    append: bool = False
    closed: bool = False
    _kept: Counter[Row] = field(default_factory=Counter)
    _settled_left: set[Row] = field(default_factory=set)
    _settled_right: set[Row] = field(default_factory=set)
    _output: Counter[Row] = field(default_factory=Counter)
    _pending: Counter[tuple[int, Row]] = field(default_factory=Counter)
    _released: int | None = None

    def __post_init__(self) -> None:
        refuse_other_kinds(self, self.kind, [kind for kind in JoinKind if kind is not JoinKind.MARK])

    def on_batch(self, left: Sequence[Record], right: Sequence[Record]) -> Counter[Row]:
        """The net changes of the output: row to signed count, without zeros."""
        self.left.take(left)
        self.right.take(right)
        return self._left_over()

    def on_watermark(self, at_left: int | None, at_right: int | None) -> Counter[Row]:
        """``at_left``: no left row before it comes any more."""
        before = self._derived(self._pairs(), lone_rows=True)
        pairs = self._pairs()
        lower, upper = self.lower, None if self.upper is None else -self.upper
        gone_left = {row for row in self.left.content if _goes(row[self.times[0]], self.left, at_left, at_right, lower)}
        gone_right = {
            row for row in self.right.content if _goes(row[self.times[1]], self.right, at_right, at_left, upper)
        }
        self._settled_left.update(left for left, right in pairs if right in gone_right)
        self._settled_right.update(right for left, right in pairs if left in gone_left)
        for side, settled, gone in (
            (self.left, self._settled_left, gone_left),
            (self.right, self._settled_right, gone_right),
        ):
            settled.difference_update(gone)
            for row in gone:
                del side.content[row]
        self._kept += before - self._derived(self._pairs(), lone_rows=True)
        changes = self._left_over()
        if self.closed and at_left is not None and at_right is not None:
            changes.update(self._due(min(at_left, at_right)))
        return changes

    def _left_over(self) -> Counter[Row]:
        """What has changed in the output since the last time."""
        output = self._kept + self._derived(self._pairs(), lone_rows=not self.append)
        changes, self._output = difference(output, self._output), output
        if not self.closed:
            return changes
        for row, count in changes.items():
            due = self._final(row)
            if due is not None and (self._released is None or due >= self._released):
                self._pending[due, row] += count
        return Counter()

    def _due(self, reached: int) -> Counter[Row]:
        self._released = reached
        leaving = {(due, row): count for (due, row), count in self._pending.items() if due < reached}
        for place in leaving:
            del self._pending[place]
        return Counter({row: count for (_, row), count in leaving.items() if count > 0})

    def _final(self, row: Row) -> int | None:
        """When a row of the output can change no more: at the later of its times, and of those it could yet match."""
        left, right = row[self.times[0]], None
        if self.kind not in _LEFT_ONLY:
            right = row[self.widths[0] + self.times[1]]
        if isinstance(left, int) and isinstance(right, int):
            return max(left, right)
        if isinstance(left, int):
            return None if self.lower is None else left + max(0, -self.lower)
        if isinstance(right, int):
            return None if self.upper is None else right + max(0, self.upper)
        return None

    def _derived(self, pairs: Sequence[tuple[Row, Row]], lone_rows: bool) -> Counter[Row]:
        result: Counter[Row] = Counter()
        matched_left = {left for left, _ in pairs} | self._settled_left
        matched_right = {right for _, right in pairs} | self._settled_right
        if self.kind not in _LEFT_ONLY:
            for left, right in pairs:
                result[left + right] += self.left.content[left] * self.right.content[right]
        if self.kind is JoinKind.SEMI:
            result.update({row: count for row, count in self.left.content.items() if row in matched_left})
        if lone_rows and self.kind in _OF_LEFT:
            pad = () if self.kind is JoinKind.ANTI else (None,) * self.widths[1]
            result.update({row + pad: n for row, n in self.left.content.items() if row not in matched_left})
        if lone_rows and self.kind in _OF_RIGHT:
            pad = (None,) * self.widths[0]
            result.update({pad + row: n for row, n in self.right.content.items() if row not in matched_right})
        return result

    def _pairs(self) -> list[tuple[Row, Row]]:
        return [(left, right) for left in self.left.content for right in self.right.content if self._match(left, right)]

    def _match(self, left: Row, right: Row) -> bool:
        at_left, at_right = left[self.times[0]], right[self.times[1]]
        if not isinstance(at_left, int) or not isinstance(at_right, int):
            return False
        keys = [tuple(row[place] for place in side.key) for row, side in ((left, self.left), (right, self.right))]
        return (
            keys_equal(keys[0], keys[1], self.null_safe)
            and (self.lower is None or self.lower <= at_left - at_right)
            and (self.upper is None or at_left - at_right <= self.upper)
            and self.condition(left, right)
        )


def _goes(time: object, side: ReferenceSide, own: int | None, other: int | None, distance: int | None) -> bool:
    """Whether a row at ``time`` is behind what the other side has reached + ``distance``, and not to be taken back."""
    if not isinstance(time, int) or other is None or distance is None or time >= other + distance:
        return False
    return side.ingest is Ingest.APPEND or (own is not None and time < own)
