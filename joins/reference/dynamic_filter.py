"""The join with one row that changes, by definition: each left row with the row that the right side holds, if any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dovetail.joins.dataflow.ports import JoinKind, refuse_other_kinds
from dovetail.joins.reference.rows import Record, Row, difference
from dovetail.joins.reference.side import ReferenceSide


@dataclass
class ReferenceDynamicFilter:
    """``condition(left row, right row)``; ``right_width``: the number of columns of the right side."""

    kind: JoinKind
    left: ReferenceSide
    right: ReferenceSide
    right_width: int
    condition: Callable[[Row, Row], bool] = lambda left, right: True
    _result: Counter[Row] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        refuse_other_kinds(self, self.kind, (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI))

    def on_batch(self, left: Sequence[Record], right: Sequence[Record]) -> Counter[Row]:
        """The net changes of the output: row to signed count, without zeros."""
        self.left.take(left)
        self.right.take(right)
        before, self._result = self._result, self._joined()
        return difference(self._result, before)

    def _joined(self) -> Counter[Row]:
        result: Counter[Row] = Counter()
        for left, count in self.left.content.items():
            found = [right for right in self.right.content if self.condition(left, right)]
            if found and self.kind is JoinKind.SEMI:
                result[left] += count
            elif found:
                result[left + found[0]] += count
            elif self.kind is JoinKind.LEFT:
                result[left + (None,) * self.right_width] += count
        return result
