"""Lookup joins once more, in plain loops over rows: what the fast ones are tested against.

A row is a tuple of values; ``None`` is NULL. Nothing is cached, kept on disk or done in batches: each left row is
compared with every right row, and what it gave is kept beside it in a list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dovetail.changelog.schema import Kind
from dovetail.joins.dataflow.ports import Ingest, JoinKind
from dovetail.joins.reference.rows import Record, Row


@dataclass
class ReferenceRows:
    """The content of a stream. ``primary_key``: positions in a row."""

    kind: Kind
    primary_key: tuple[int, ...] = ()
    _sums: Counter[Row] = field(default_factory=Counter)

    @property
    def content(self) -> list[Row]:
        return [row for row, count in self._sums.items() for _ in range(max(count, 0))]

    def take(self, records: Sequence[Record]) -> None:
        for row, delta in records:
            if self.kind in (Kind.UPSERT, Kind.CHANGELOG_KV):
                self._upsert(row, delta)
            else:
                self._sums[row] += delta

    def _upsert(self, row: Row, delta: int) -> None:
        same_key = [held for held in self._sums if _part(held, self.primary_key) == _part(row, self.primary_key)]
        if delta < 0 and self.kind is Kind.CHANGELOG_KV and same_key != [row]:
            return
        for held in same_key:
            del self._sums[held]
        if delta > 0:
            self._sums[row] = 1


@dataclass
class ReferenceLookup:
    """A join with the ``rows`` of which the columns ``by`` equal the columns ``keys`` of the left row. SEMI, ANTI and
    MARK ask whether there is one.
    """

    kind: JoinKind
    keys: tuple[int, ...]
    rows: ReferenceRows
    by: tuple[int, ...]
    padding: Row
    condition: Callable[[Row], bool] = lambda joined: True

    def answer(self, left: Row) -> list[Row]:
        key = _part(left, self.keys)
        joined = [left + right for right in self.rows.content if _part(right, self.by) == key and None not in key]
        joined = [row for row in joined if self.condition(row)]
        if self.kind is JoinKind.MARK:
            return [(*left, bool(joined))]
        if self.kind.is_existence:
            return [left] if bool(joined) == (self.kind is JoinKind.SEMI) else []
        return joined or ([left + self.padding] if self.kind is JoinKind.LEFT else [])


@dataclass
class ReferenceFlow:
    """Joins one after the other, and for an updating left side the rows that stand, each with what it gave.

    identity   positions of the primary key, or of the columns in which a retraction equals its row
    """

    ingest: Ingest
    joins: Sequence[ReferenceLookup]
    identity: tuple[int, ...] = ()
    dangling: int = 0
    _current: list[tuple[Row, list[Row]]] = field(default_factory=list)

    def on_batch(self, records: Sequence[Record]) -> Counter[Row]:
        """The net changes of the output: row to signed count, without zeros."""
        if self.ingest is Ingest.APPEND:
            return Counter(row for left, _ in records for row in self._answered(left))
        before = self._output
        follow = self._upsert if self.ingest in (Ingest.UPSERT, Ingest.CHANGELOG_KV) else self._change
        for row, delta in records:
            follow(row, delta)
        changes = self._output
        changes.subtract(before)
        return Counter({row: count for row, count in changes.items() if count})

    @property
    def _output(self) -> Counter[Row]:
        return Counter(row for _, given in self._current for row in given)

    def _answered(self, left: Row) -> list[Row]:
        rows = [left]
        for join in self.joins:
            rows = [joined for row in rows for joined in join.answer(row)]
        return rows

    def _upsert(self, row: Row, delta: int) -> None:
        held = [entry for entry in self._current if _part(entry[0], self.identity) == _part(row, self.identity)]
        if delta < 0 and self.ingest is Ingest.CHANGELOG_KV and [other for other, _ in held] != [row]:
            self.dangling += 1
            return
        for entry in held:
            self._current.remove(entry)
        if delta > 0:
            self._current.append((row, self._answered(row)))

    def _change(self, row: Row, delta: int) -> None:
        """An insertion, or the retraction of the copy that came first."""
        if delta > 0:
            self._current.append((row, self._answered(row)))
            return
        for entry in self._current:
            if _part(entry[0], self.identity) == _part(row, self.identity):
                self._current.remove(entry)
                return
        self.dangling += 1


def _part(row: Row, positions: Sequence[int]) -> Row:
    return tuple(row[position] for position in positions)
