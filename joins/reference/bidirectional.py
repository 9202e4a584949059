"""The symmetric join, by definition: every pair of a left and a right row with equal keys for which the condition
holds; outer kinds add each row that is in no pair, padded. SEMI gives the left rows that are in one, ANTI those in
none, MARK all with whether they are. Of several inputs by one key: every combination of a row of each.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dovetail.joins.dataflow.ports import JoinKind, refuse_other_kinds
from dovetail.joins.reference.rows import Record, Row, difference, keys_equal, part
from dovetail.joins.reference.side import ReferenceSide


@dataclass
class ReferenceJoin:
    """The symmetric join. ``condition(left row, right row)``; ``widths``: the numbers of columns of left and right."""

    kind: JoinKind
    left: ReferenceSide
    right: ReferenceSide
    widths: tuple[int, int]
    null_safe: tuple[bool, ...] = ()
    condition: Callable[[Row, Row], bool] = lambda left, right: True
    _result: Counter[Row] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        refuse_other_kinds(self, self.kind, tuple(JoinKind))

    def on_batch(self, left: Sequence[Record], right: Sequence[Record]) -> Counter[Row]:
        """The net changes of the output: row to signed count, without zeros."""
        self.left.take(left)
        self.right.take(right)
        before, self._result = self._result, self._joined()
        return difference(self._result, before)

    def _joined(self) -> Counter[Row]:
        result: Counter[Row] = Counter()
        matched_right: set[Row] = set()
        for left, left_count in self.left.content.items():
            matches = [right for right in self.right.content if self._match(left, right)]
            matched_right.update(matches)
            if self.kind is JoinKind.MARK:
                result[*left, bool(matches)] += left_count
                continue
            if self.kind in (JoinKind.SEMI, JoinKind.ANTI):
                if bool(matches) == (self.kind is JoinKind.SEMI):
                    result[left] += left_count
                continue
            for right in matches:
                result[left + right] += left_count * self.right.content[right]
            if not matches and self.kind in (JoinKind.LEFT, JoinKind.FULL):
                result[left + (None,) * self.widths[1]] += left_count
        if self.kind in (JoinKind.RIGHT, JoinKind.FULL):
            for right, count in self.right.content.items():
                if right not in matched_right:
                    result[(None,) * self.widths[0] + right] += count
        return result

    def _match(self, left: Row, right: Row) -> bool:
        return keys_equal(part(left, self.left.key), part(right, self.right.key), self.null_safe) and self.condition(
            left, right
        )


@dataclass
class ReferenceMultiwayJoin:
    """The n-way join. ``optional``: the places of the sides for which a padded row stands where they have none of the
    key; not the first. ``condition(left to right: a row of each side)``.
    """

    sides: Sequence[ReferenceSide]
    widths: tuple[int, ...]
    optional: tuple[int, ...] = ()
    null_safe: tuple[bool, ...] = ()
    condition: Callable[[Sequence[Row]], bool] = lambda rows: True
    _result: Counter[Row] = field(default_factory=Counter)

    def on_batch(self, *batches: Sequence[Record]) -> Counter[Row]:
        """The net changes of the output: row to signed count, without zeros."""
        for side, records in zip(self.sides, batches, strict=True):
            side.take(records)
        before, self._result = self._result, self._joined()
        return difference(self._result, before)

    def _joined(self) -> Counter[Row]:
        result: Counter[Row] = Counter()
        for first, count in self.sides[0].content.items():
            key = part(first, self.sides[0].key)
            others = [self._rows_of(place, key) for place in range(1, len(self.sides))]
            for combination in itertools.product([(first, count)], *others):
                rows = [row for row, _ in combination]
                if self.condition(rows):
                    result[tuple(itertools.chain(*rows))] += math.prod(each for _, each in combination)
        return result

    def _rows_of(self, place: int, key: Row) -> list[Record]:
        side = self.sides[place]
        found = [
            (row, count) for row, count in side.content.items() if keys_equal(key, part(row, side.key), self.null_safe)
        ]
        return found or ([((None,) * self.widths[place], 1)] if place in self.optional else [])
