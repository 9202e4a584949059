"""One side of a range join: its rows by key and time, and where they look on the other side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dovetail.changelog.changes import Changes
from dovetail.changelog.rows import Mask, any_null
from dovetail.joins.dataflow.ports import Ingest, Port
from dovetail.joins.inputs.change_normalizer import ChangeNormalizer
from dovetail.joins.state.arrangement import Arrangement, TimeWindow
from dovetail.joins.state.order import EARLIEST, LATEST, NEVER, Times, bound_of, shifted, times_of


@dataclass
class RangeSide:
    """A row at ``time`` matches rows of the other side from ``time - before`` to ``time + after``; None: no bound.

    shift   rows of the port that are yet to come have ``time >= watermark + shift`` (ms, or the number itself); None:
            nothing is known of them
    """

    normalizer: ChangeNormalizer
    time: str
    before: int | None
    after: int | None
    shift: int | None
    _gone: int = 0
    """Retractions of rows that have gone, where the normalizer does not look for the rows."""

    @property
    def port(self) -> Port:
        return self.normalizer.port

    @property
    def rows(self) -> Arrangement:
        return self.normalizer.arrangement

    @property
    def dangling(self) -> int:
        return self.normalizer.dangling + self._gone

    @property
    def only_grows(self) -> bool:
        """Whether there can be no retraction."""
        return self.port.ingest is Ingest.APPEND

    def normalize(self, rows: pa.Table | None) -> Changes:
        """The changes that ``rows`` make; nothing is inserted yet. Retractions of rows that have gone are left out."""
        if rows is None or rows.num_rows == 0:
            return Changes.empty(self.rows.schema)
        changes = self.normalizer.changes(rows)
        if self.port.ingest is not Ingest.CHANGES or changes.only_insertions:
            return changes
        changes = changes.consolidated()
        gone = self._times(changes) < (EARLIEST if self.rows.expired is None else self.rows.expired)
        gone &= changes.deltas < 0
        self._gone -= int(changes.deltas[gone].sum())
        return changes.where(~gone)

    def store(self, changes: Changes) -> None:
        """Insert ``changes``; without the rows that can match nothing, where nobody looks for them either."""
        if not self.port.ingest.compared:
            changes = changes.where(self.matchable(changes))
        self.rows.insert(changes)

    def matchable(self, changes: Changes) -> Mask:
        """Which rows have a time, and a key that can be equal to another."""
        return ~any_null(changes.table, [*self.rows.strict(), self.time])

    def timeless(self, changes: Changes) -> Mask:
        return any_null(changes.table, [self.time])

    def window(self, changes: Changes) -> TimeWindow:
        """Where each row looks on the other side; a row without a time looks nowhere."""
        times = self._times(changes)
        low = np.full(len(times), EARLIEST) if self.before is None else shifted(times, -self.before)
        high = np.full(len(times), LATEST) if self.after is None else shifted(times, self.after)
        high[times == NEVER] = EARLIEST
        low[times == NEVER] = LATEST
        return low, high

    def last_match(self, changes: Changes) -> Times:
        """The greatest of the times of each row and of what it can match; NEVER where there is none."""
        times = self._times(changes)
        if self.after is None:
            return np.full(len(times), NEVER)
        return np.where(times == NEVER, NEVER, shifted(times, max(self.after, 0)))

    def reached(self, watermark: int | None) -> int | None:
        """The time that no row of the port comes before any more, as it orders; None: any may come."""
        if watermark is None or self.shift is None:
            return None
        return bound_of(watermark + self.shift, self.rows.schema.field(self.time).type)

    def bound(self, own: int | None, other: int | None) -> int | None:
        """The time before which rows go; None: all stay. ``own``, ``other``: what the sides have reached.

        Such rows match nothing that is yet to come on the other side, and are not taken back by who is on time.
        """
        if other is None or self.after is None:
            return None
        bound = min(max(other - self.after, EARLIEST), LATEST)
        if self.only_grows or self.port.watermark is None or self.shift is None:
            return bound
        return None if own is None else min(bound, own)

    def drop(self, bound: int | None) -> Changes:
        """Remove the rows before ``bound``; those removed."""
        return Changes.empty(self.rows.schema) if bound is None else self.rows.expire(bound)

    def _times(self, changes: Changes) -> Times:
        return times_of(changes.table.column(self.time))
