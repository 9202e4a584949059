"""One input of a reference operator: its current rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from dovetail.joins.dataflow.ports import Ingest
from dovetail.joins.reference.rows import Record, Row, part


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
            elif self.ingest is Ingest.CHANGELOG:
                self.content[row] -= min(-delta, self.content[row])
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
