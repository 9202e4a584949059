"""Partitions, by definition: the rows there are, parted by their keys, each part sorted.

Of each the first rows by their rank; or every row with its place, the row before it and a running sum.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cmp_to_key
from typing import Any

from dovetail.joins.partitions.ordering import Rank
from dovetail.joins.reference.rows import Record, Row, difference, part
from dovetail.joins.reference.side import ReferenceSide

Term = tuple[int, bool, bool]
"""Of ORDER BY: the position of a column, whether it descends, whether NULL comes first."""


@dataclass
class _Partitions(ABC):
    """``order``: what sorts a partition; then the row itself does."""

    side: ReferenceSide
    order: Sequence[Term]
    _result: Counter[Row] = field(default_factory=Counter)

    def on_batch(self, records: Sequence[Record]) -> Counter[Row]:
        self.side.take(records)
        before, self._result = self._result, Counter(row for rows in self._parts() for row in self.output(rows))
        return difference(self._result, before)

    def _parts(self) -> Iterator[list[Row]]:
        parts: dict[Row, list[Row]] = {}
        for row in self.side.content.elements():
            parts.setdefault(part(row, self.side.key), []).append(row)
        for rows in parts.values():
            yield sorted(rows, key=cmp_to_key(self._compared))

    def _compared(self, left: Row, right: Row) -> int:
        every = [*self.order, *((position, False, False) for position in range(len(left)))]
        return next((sign for term in every if (sign := _sign(left, right, term))), 0)

    def peers(self, left: Row, right: Row) -> bool:
        return not any(_sign(left, right, term) for term in self.order)

    @abstractmethod
    def output(self, rows: Sequence[Row]) -> Iterator[Row]:
        """What the rows of a partition, in order, give."""


@dataclass
class ReferenceTopN(_Partitions):
    """The rows whose ``rank`` is from ``first`` to ``last``, with it if ``numbered``."""

    rank: Rank = Rank.ROW_NUMBER
    first: int = 1
    last: int = 1
    numbered: bool = False

    def output(self, rows: Sequence[Row]) -> Iterator[Row]:
        for row, rank in zip(rows, self._ranks(rows), strict=True):
            if self.first <= rank <= self.last:
                yield (*row, rank) if self.numbered else row

    def _ranks(self, rows: Sequence[Row]) -> Iterator[int]:
        rank = 0
        for place, row in enumerate(rows, start=1):
            new = place == 1 or not self.peers(row, rows[place - 2])
            if self.rank is Rank.DENSE_RANK:
                rank += new
            elif self.rank is Rank.ROW_NUMBER or new:
                rank = place
            yield rank


@dataclass
class ReferenceOver(_Partitions):
    """Each row with its place, the value of a column in the row before, and the sum of that column up to the row."""

    column: int = 0

    def output(self, rows: Sequence[Row]) -> Iterator[Row]:
        before, total = None, None
        for place, row in enumerate(rows, start=1):
            value: Any = row[self.column]
            total = value if total is None else total + (value or 0)
            yield (*row, place, before, total)
            before = value


def _sign(left: Row, right: Row, term: Term) -> int:
    position, descends, nulls_first = term
    ours, theirs = left[position], right[position]
    if ours is None or theirs is None:
        return ((theirs is None) - (ours is None)) * (1 if nulls_first else -1)
    first, second = _comparable(ours), _comparable(theirs)
    sign = int(first > second) - int(first < second)
    return -sign if descends else sign


def _comparable(value: Any) -> Any:
    """NaN is greater than all numbers; texts are in the order of their bytes."""
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value)
    return value.encode() if isinstance(value, str) else value
