"""Every operator once more, in plain loops over rows: what the fast ones are tested against.

A reference keeps the full content of both sides, computes the whole result after each batch, and gives the difference
to the one before. A row is a tuple of values; ``None`` is NULL.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from joins.dataflow import Fold, Ingest, JoinKind

Row = tuple[object, ...]
Record = tuple[Row, int]
"""A row and its delta, in order of arrival."""


@dataclass
class ReferenceSide:
    """The content of one input. ``key`` and ``primary_key`` are positions in a row."""

    ingest: Ingest
    key: tuple[int, ...]
    primary_key: tuple[int, ...] = ()
    content: Counter[Row] = field(default_factory=Counter)

    def take(self, records: Iterable[Record]) -> None:
        retracted: Counter[Row] = Counter()
        for row, delta in records:
            if self.ingest in (Ingest.UPSERT, Ingest.CHANGELOG_KV):
                self._upsert(row, delta)
            elif delta > 0:
                self.content[row] += delta
            else:
                retracted[row] -= delta
        for row, count in retracted.items():
            self.content[row] -= min(count, self.content[row])
        self.content = +self.content

    def _upsert(self, row: Row, delta: int) -> None:
        held = [other for other in self.content if part(other, self.primary_key) == part(row, self.primary_key)]
        if delta < 0 and self.ingest is Ingest.CHANGELOG_KV and held != [row]:
            return
        for other in held:
            del self.content[other]
        if delta > 0:
            self.content[row] = 1


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
class ReferenceEnrichment:
    """The one-shot join: the left rows of a batch against the right content after the batch."""

    kind: JoinKind
    left_key: tuple[int, ...]
    right: ReferenceSide
    right_width: int
    condition: Callable[[Row, Row], bool] = lambda left, right: True

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
            if self.kind in (JoinKind.SEMI, JoinKind.ANTI):
                result[row] += count * (bool(matches) == (self.kind is JoinKind.SEMI))
                continue
            for other, held in matches.items():
                result[row + other] += count * held
            if not matches and self.kind is JoinKind.LEFT:
                result[row + (None,) * self.right_width] += count
        return +result


_HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
}


@dataclass
class ReferenceAsof:
    """One-shot ASOF over (key, time, value) rows: position 0 is the key, 1 the time, on both sides."""

    kind: JoinKind
    comparison: str
    keep_versions: int
    versions: dict[object, list[tuple[object, int, Row]]] = field(default_factory=dict)
    arrived: int = 0

    def on_batch(self, left: Sequence[Record], right: Sequence[Record]) -> Counter[Row]:
        for row, _ in right:
            self.arrived += 1
            self.versions.setdefault(row[0], []).append((row[1], self.arrived, row))
        for key, held in self.versions.items():
            self.versions[key] = sorted(held, key=_by_time)[-self.keep_versions :]
        result: Counter[Row] = Counter()
        for row, count in left:
            match = self._nearest(row)
            if match is not None:
                result[row + match] += count
            elif self.kind is JoinKind.LEFT:
                result[row + (None,) * 3] += count
        return result

    def _nearest(self, row: Row) -> Row | None:
        if row[0] is None or row[1] is None:
            return None
        holds = _HOLDS[self.comparison]
        fitting = [v for v in self.versions.get(row[0], []) if v[0] is not None and holds(row[1], v[0])]
        if not fitting:
            return None
        looks_back = self.comparison in (">=", ">")
        edge = (max if looks_back else min)(_by_time(v)[1] for v in fitting)
        return max((v for v in fitting if v[0] == edge), key=lambda v: v[1])[2]


def keys_equal(left: Row, right: Row, null_safe: Sequence[bool]) -> bool:
    safe = null_safe or (False,) * len(left)
    return all(a == b and (s or a is not None) for a, b, s in zip(left, right, safe, strict=True))


def _by_time(version: tuple[object, int, Row]) -> tuple[bool, Any, int]:
    time, arrived, _ = version
    return time is not None, time if time is not None else 0, arrived


def difference(after: Counter[Row], before: Counter[Row]) -> Counter[Row]:
    """Row to signed count, without zeros."""
    changes = Counter(after)
    changes.subtract(before)
    return Counter({row: count for row, count in changes.items() if count})


def part(row: Row, positions: Sequence[int]) -> Row:
    return tuple(row[position] for position in positions)


@dataclass
class ReferenceAggregate:
    """A row for each group of equal keys. ``folds``: what is made of the values at a position of the rows, of their set
    if DISTINCT; COUNT at None counts the rows."""

    side: ReferenceSide
    folds: Sequence[tuple[Fold, int | None, bool]]
    _result: Counter[Row] = field(default_factory=Counter)

    def on_batch(self, records: Sequence[Record]) -> Counter[Row]:
        self.side.take(records)
        before, self._result = self._result, self._grouped()
        return difference(self._result, before)

    def _grouped(self) -> Counter[Row]:
        groups: dict[Row, list[Row]] = {key: [] for key in [()] if self._result and not self.side.key}
        for row in self.side.content.elements():
            groups.setdefault(part(row, self.side.key), []).append(row)
        return Counter(key + tuple(self._folded(rows, *fold) for fold in self.folds) for key, rows in groups.items())

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
