"""The joins with one right row of many once more, in plain loops over rows: ASOF, LATEST, event-time temporal.

What the fast ones are tested against. They keep all rows that stand, in the order of their arrival, and look at every
one of them. A row is a tuple of values; ``None`` is NULL.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from joins.dataflow import Ingest, JoinKind
from joins.reference import Record, Row, difference, keys_equal, part

HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
}
Condition = Callable[[Row, Row], bool]


def always(left: Row, right: Row) -> bool:
    return True


@dataclass
class Arrived:
    """The rows of an input that stand, in the order of their arrival. ``key`` and ``primary_key`` are positions.

    UPSERT, CHANGELOG_KV   an insertion takes the row of its primary key away and comes last
    CHANGES, CHANGELOG     a retraction takes away the first row that equals it, once all rows of its batch are in
    """

    ingest: Ingest
    key: tuple[int, ...]
    primary_key: tuple[int, ...] = ()
    rows: list[Row] = field(default_factory=list)

    def take(self, records: Iterable[Record]) -> list[Row]:
        """The rows inserted that stand after the batch."""
        fresh: list[tuple[Row, bool]] = [(row, False) for row in self.rows]
        retracted = []
        for row, delta in records:
            if self.ingest in (Ingest.UPSERT, Ingest.CHANGELOG_KV):
                replaced = [held for held, _ in fresh if part(held, self.primary_key) == part(row, self.primary_key)]
                if delta < 0 and self.ingest is Ingest.CHANGELOG_KV and replaced != [row]:
                    continue
                fresh = [(held, new) for held, new in fresh if held not in replaced]
            if delta > 0:
                fresh.append((row, True))
            elif self.ingest in (Ingest.CHANGES, Ingest.CHANGELOG):
                retracted.append(row)
        for row in retracted:
            place = next((place for place, (held, _) in enumerate(fresh) if held == row), None)
            if place is not None:
                del fresh[place]
        self.rows = [row for row, _ in fresh]
        return [row for row, new in fresh if new]

    def under(self, key: Row, null_safe: Sequence[bool] = ()) -> list[Row]:
        return [row for row in self.rows if keys_equal(key, part(row, self.key), null_safe)]


@dataclass
class ReferenceLatest:
    """The LATEST join; ``widths``: the numbers of columns of left and right."""

    kind: JoinKind
    left: Arrived
    right: Arrived
    widths: tuple[int, int]

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
    condition: Condition = always
    _waiting: list[Row] = field(default_factory=list)

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
            asked = [self._time(row) for row in self._waiting if part(row, self.left_key) == key]
            first = len(known) - self.keep_versions
            if asked and self.comparison in (">=", ">"):
                before = [time for time in known if HOLDS[self.comparison](min(asked), time)]
                first = min(first, len(before) - self.keep_versions)
            elif asked:
                first = min(first, sum(not HOLDS[self.comparison](min(asked), time) for time in known))
            self._forget(key, known[: max(first, 0)])

    def _forget(self, key: Row, gone: list[Any]) -> None:
        """Take the first to arrive of each of these times away, and the rows without a time."""
        for row in self.right.under(key):
            if row[self.times[1]] in gone:
                gone.remove(row[self.times[1]])
                self.right.rows.remove(row)

    def _time(self, row: Row) -> Any:
        return row[self.times[0]]


@dataclass
class ReferenceAsofUpdating:
    """The updating ASOF join. ``times`` and ``ties`` are positions in left and right, and in right rows."""

    kind: JoinKind
    left: Arrived
    right: Arrived
    widths: tuple[int, int]
    times: tuple[int, int]
    comparison: str
    ties: tuple[int, ...] = ()
    tolerance: int | None = None
    null_safe: tuple[bool, ...] = ()
    _result: Counter[Row] = field(default_factory=Counter)

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
        return nearest(row[self.times[0]], others, self.times[1], self.comparison, self.ties, self.tolerance)


def nearest(
    at: Any, others: list[Row], time: int, comparison: str, ties: tuple[int, ...] = (), tolerance: int | None = None
) -> Row | None:
    """Of ``others``, in the order of arrival, the nearest to ``at`` in time."""
    fitting: list[Any] = [
        other for other in others if at is not None and other[time] is not None and HOLDS[comparison](at, other[time])
    ]
    if not fitting:
        return None
    edge = (max if comparison in (">=", ">") else min)(other[time] for other in fitting)
    if tolerance is not None and abs(at - edge) > tolerance:
        return None
    alike: list[Row] = [other for other in fitting if other[time] == edge]
    return min(alike, key=lambda other: nulls_last(part(other, ties))) if ties else alike[-1]


def nulls_last(values: Row) -> tuple[Any, ...]:
    return tuple((value is None, value if value is not None else 0) for value in values)


@dataclass
class ReferenceTemporal:
    """The event-time temporal join. ``deleted``: the position, in a right row, of what marks a version as deleted."""

    kind: JoinKind
    left: Arrived
    versions: Arrived
    widths: tuple[int, int]
    times: tuple[int, int]
    deleted: int | None = None
    condition: Condition = always
    _answers: list[tuple[Row, Row | None]] = field(default_factory=list)
    _result: Counter[Row] = field(default_factory=Counter)

    def on_batch(self, left: Sequence[Record], right: Sequence[Record]) -> Counter[Row]:
        """What is taken back, and what will never have a version."""
        self.left.take(left)
        self.versions.take(right)
        standing = Counter(self.left.rows)
        kept: list[tuple[Row, Row | None]] = []
        for row, version in self._answers:
            if standing[row] > 0:
                standing[row] -= 1
                kept.append((row, version))
        timeless = [row for row in standing.elements() if row[self.times[0]] is None]
        self._answers = kept + [(row, None) for row in timeless]
        return self._changes()

    def on_watermark(self, watermarks: tuple[int | None, int | None]) -> Counter[Row]:
        left, right = watermarks
        if left is None or right is None:
            return Counter()
        waiting = Counter(self.left.rows)
        waiting.subtract(row for row, _ in self._answers)
        for row in waiting.elements():
            time: Any = row[self.times[0]]
            if time is not None and time < min(left, right):
                self._answers.append((row, self._version(row)))
        return self._changes()

    def _version(self, row: Row) -> Row | None:
        versions = self.versions.under(part(row, self.left.key))
        found = nearest(row[self.times[0]], versions, self.times[1], ">=")
        ended = found is not None and self.deleted is not None and found[self.deleted] is True
        return found if found is not None and not ended and self.condition(row, found) else None

    def _changes(self) -> Counter[Row]:
        result: Counter[Row] = Counter()
        for row, version in self._answers:
            if version is not None:
                result[row + version] += 1
            elif self.kind is JoinKind.LEFT:
                result[row + (None,) * self.widths[1]] += 1
        before, self._result = self._result, result
        return difference(result, before)
