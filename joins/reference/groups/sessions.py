"""Session windows, by definition: the rows of a key in order of time, cut where a gap is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from dovetail.joins.reference.rows import Record, Row, difference, part
from dovetail.joins.reference.side import ReferenceSide


@dataclass
class ReferenceSessions:
    """Each row with the bounds of its session; ``time`` is a position in a row, a whole number there or NULL."""

    side: ReferenceSide
    time: int
    gap: int
    longest: int | None = None
    closed: bool = False
    _result: Counter[Row] = field(default_factory=Counter)

    def on_batch(self, records: Sequence[Record]) -> Counter[Row]:
        self.side.take(records)
        if self.closed:
            return Counter()
        before, self._result = self._result, self._in_sessions()
        return difference(self._result, before)

    def on_watermark(self, watermark: int) -> Counter[Row]:
        """What leaves when no row before ``watermark`` can come."""
        over = Counter({row: count for row, count in self._in_sessions().items() if self._end(row) <= watermark})
        for row, count in over.items():
            self.side.content[row[:-2]] -= count
        self.side.content = +self.side.content
        self._result = Counter() if self.closed else self._in_sessions()
        return over if self.closed else Counter()

    @staticmethod
    def _end(row: Row) -> int:
        end = row[-1]
        assert isinstance(end, int)
        return end

    def _in_sessions(self) -> Counter[Row]:
        by_key: dict[Row, list[tuple[int, Row]]] = {}
        for row in self.side.content.elements():
            time = row[self.time]
            if isinstance(time, int):
                by_key.setdefault(part(row, self.side.key), []).append((time, row))
        found: Counter[Row] = Counter()
        for rows in by_key.values():
            for session in self._parted(sorted(rows, key=lambda one: one[0])):
                start, last = session[0][0], session[-1][0]
                end = last + self.gap if self.longest is None else min(last + self.gap, start + self.longest)
                found.update((*row, start, end) for _, row in session)
        return found

    def _parted(self, rows: Sequence[tuple[int, Row]]) -> Iterator[list[tuple[int, Row]]]:
        session: list[tuple[int, Row]] = []
        for time, row in rows:
            apart = bool(session) and time - session[-1][0] >= self.gap
            if apart or (session and self.longest is not None and time - session[0][0] >= self.longest):
                yield session
                session = []
            session.append((time, row))
        if session:
            yield session
