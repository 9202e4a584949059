"""A budget of rows for each key, by definition: record by record, over lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dovetail.joins.dataflow.ports import Ingest
from dovetail.joins.reference.rows import Record, Row, part


@dataclass
class ReferenceBudget:
    """At most ``most`` rows of a key stand. ``key`` and ``primary_key`` are positions in a row; ``null_safe``: a key of
    NULL has a budget too.
    """

    ingest: Ingest
    most: int
    key: tuple[int, ...]
    primary_key: tuple[int, ...] = ()
    null_safe: bool = False
    _held: list[Row] = field(default_factory=list)
    _refused: list[Row] = field(default_factory=list)

    def judged(self, records: Sequence[Record]) -> tuple[list[Record], list[Record]]:
        """The records that count, and those that are refused."""
        count: list[Record] = []
        refused: list[Record] = []
        for row, delta in records:
            (refused if self._refuses(row, delta) else count).append((row, delta))
        return count, refused

    def _refuses(self, row: Row, delta: int) -> bool:
        replaced = [other for other in self._held if self._is_of(other, row)]
        if delta < 0:
            if row in self._refused:
                self._refused.remove(row)
                return True
            for other in replaced[:1]:
                self._held.remove(other)
            return False
        key = part(row, self.key)
        of_key = [other for other in self._held if part(other, self.key) == key]
        budgeted = self.null_safe or None not in key
        if self.ingest is Ingest.UPSERT and replaced:
            self._held.remove(replaced[0])
        elif budgeted and len(of_key) >= self.most:
            if self.ingest is Ingest.CHANGELOG:
                self._refused.append(row)
            return True
        self._held.append(row)
        return False

    def _is_of(self, other: Row, row: Row) -> bool:
        """Whether ``row`` replaces, or takes back, the row ``other``."""
        if self.ingest is Ingest.UPSERT:
            return part(other, self.primary_key) == part(row, self.primary_key)
        return other == row
