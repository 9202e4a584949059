"""The enrichment join, by definition: each left row once, as it comes, with every right row of its key that stands
after the batch; SEMI and ANTI give the left row alone, where there is one, or none, MARK with whether there is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dovetail.joins.dataflow.ports import JoinKind, refuse_other_kinds
from dovetail.joins.reference.rows import Record, Row, keys_equal, part
from dovetail.joins.reference.side import ReferenceSide


@dataclass
class ReferenceEnrichment:
    """The one-shot join: the left rows of a batch against the right content after the batch."""

    kind: JoinKind
    left_key: tuple[int, ...]
    right: ReferenceSide
    right_width: int
    condition: Callable[[Row, Row], bool] = lambda left, right: True

    def __post_init__(self) -> None:
        refuse_other_kinds(
            self, self.kind, (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK)
        )

    def on_batch(self, left: Sequence[Record], right: Sequence[Record]) -> Counter[Row]:
        self.right.take(right)
        result: Counter[Row] = Counter()
        for row, count in left:
            matches = Counter(
                {
                    other: held
                    for other, held in self.right.content.items()
                    if keys_equal(part(row, self.left_key), part(other, self.right.key), ())
                    and self.condition(row, other)
                }
            )
            if self.kind is JoinKind.MARK:
                result[*row, bool(matches)] += count
                continue
            if self.kind in (JoinKind.SEMI, JoinKind.ANTI):
                result[row] += count * (bool(matches) == (self.kind is JoinKind.SEMI))
                continue
            for other, held in matches.items():
                result[row + other] += count * held
            if not matches and self.kind is JoinKind.LEFT:
                result[row + (None,) * self.right_width] += count
        return +result
