"""Groups, by definition: the rows there are, parted by their keys; of each part its keys and, over the values that are
not NULL, its aggregates, summed as fractions; or, over all rows of the part, any function of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dovetail.joins.aggregates.aggregation import Fold
from dovetail.joins.reference.rows import Record, Row, difference, part
from dovetail.joins.reference.side import ReferenceSide


@dataclass
class ReferenceAggregate:
    """A row for each group of equal keys. ``folds``: what is made of the values at a position of the rows, of their set
    if DISTINCT; COUNT at None counts the rows. ``recomputed``: functions of the rows of a group, in no order."""

    side: ReferenceSide
    folds: Sequence[tuple[Fold, int | None, bool]]
    recomputed: Sequence[Callable[[Sequence[Row]], object]] = ()
    _result: Counter[Row] = field(default_factory=Counter)

    def on_batch(self, records: Sequence[Record]) -> Counter[Row]:
        self.side.take(records)
        before, self._result = self._result, self._grouped()
        return difference(self._result, before)

    def _grouped(self) -> Counter[Row]:
        groups: dict[Row, list[Row]] = {} if self.side.key else {(): []}
        for row in self.side.content.elements():
            groups.setdefault(part(row, self.side.key), []).append(row)
        return Counter(key + self._aggregates(rows) for key, rows in groups.items())

    def _aggregates(self, rows: Sequence[Row]) -> Row:
        folded = tuple(self._folded(rows, *fold) for fold in self.folds)
        return folded + tuple(function(rows) for function in self.recomputed)

    @staticmethod
    def _folded(rows: Sequence[Row], fold: Fold, position: int | None, distinct: bool) -> object:
        if position is None:
            return len(rows)
        values: list[Any] = [row[position] for row in rows if row[position] is not None]
        values = list(dict.fromkeys(values)) if distinct else values
        if fold is Fold.COUNT:
            return len(values)
        return _FOLDED[fold](values) if values else None


def _exact_sum(values: Sequence[Any]) -> Any:
    total = sum(map(Fraction, values))
    return float(total) if isinstance(values[0], float) else int(total)


def _sum_in_64_bits(values: Sequence[Any]) -> Any:
    total = _exact_sum(values)
    return total if isinstance(total, float) or -(2**63) <= total < 2**63 else None


_FOLDED: dict[Fold, Callable[[Sequence[Any]], Any]] = {
    Fold.SUM: _sum_in_64_bits,
    Fold.AVG: lambda values: float(_exact_sum(values)) / len(values),
    Fold.MIN: min,
    Fold.MAX: max,
}
