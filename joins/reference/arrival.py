"""Rows in the order in which they came, and the nearest of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dovetail.joins.dataflow.ports import Ingest
from dovetail.joins.reference.rows import HOLDS, Record, Row, keys_equal, part


def always(left: Row, right: Row) -> bool:
    return True


@dataclass
class Arrived:
    """The rows of an input that stand, in the order of their arrival. ``key`` and ``primary_key`` are positions.

    UPSERT, CHANGELOG_KV   an insertion takes the row of its primary key away and comes last
    CHANGELOG              a retraction takes away the first row that equals it
    CHANGES                the same, once all rows of its batch are in
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
            elif self.ingest is Ingest.CHANGELOG:
                _take_first(fresh, row)
            elif self.ingest is Ingest.CHANGES:
                retracted.append(row)
        for row in retracted:
            _take_first(fresh, row)
        self.rows = [row for row, _ in fresh]
        return [row for row, new in fresh if new]

    def under(self, key: Row, null_safe: Sequence[bool] = ()) -> list[Row]:
        return [row for row in self.rows if keys_equal(key, part(row, self.key), null_safe)]


def _take_first(rows: list[tuple[Row, bool]], row: Row) -> None:
    place = next((place for place, (held, _) in enumerate(rows) if held == row), None)
    if place is not None:
        del rows[place]


def nearest(
    at: Any,
    others: list[Row],
    time: int,
    comparison: str,
    tie_break: tuple[int, ...] = (),
    tolerance: int | None = None,
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
    return min(alike, key=lambda other: nulls_last(part(other, tie_break))) if tie_break else alike[-1]


def nulls_last(values: Row) -> tuple[Any, ...]:
    return tuple((value is None, value if value is not None else 0) for value in values)


RowCondition = Callable[[Row, Row], bool]
