"""The LATEST join, by definition: each left row once, as it comes, with the right row of its key that was inserted
last; FULL answers the right rows likewise, before the left ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from dovetail.joins.dataflow.ports import JoinKind, refuse_other_kinds
from dovetail.joins.reference.arrival import Arrived
from dovetail.joins.reference.rows import Record, Row, part


@dataclass
class ReferenceLatest:
    """The LATEST join; ``widths``: the numbers of columns of left and right."""

    kind: JoinKind
    left: Arrived
    right: Arrived
    widths: tuple[int, int]

    def __post_init__(self) -> None:
        refuse_other_kinds(self, self.kind, (JoinKind.INNER, JoinKind.LEFT, JoinKind.FULL))

    def on_batch(self, left: Sequence[Record], right: Sequence[Record]) -> Counter[Row]:
        """Right rows first: they meet the left rows of the batches before."""
        result: Counter[Row] = Counter()
        for row in self.right.take(right):
            if self.kind is JoinKind.FULL:
                others = self.left.under(part(row, self.right.key))
                result[(others[-1] if others else (None,) * self.widths[0]) + row] += 1
        for row in self.left.take(left):
            others = self.right.under(part(row, self.left.key))
            if others:
                result[row + others[-1]] += 1
            elif self.kind is not JoinKind.INNER:
                result[row + (None,) * self.widths[1]] += 1
        return result
