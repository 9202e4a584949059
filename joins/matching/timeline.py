"""The nearest row in time; and how to keep no more than the rows that may yet be the nearest.

    time      ──v1───v2─────v3──│bound──v4────────v5──▶
    kept                    v3          v4        v5

Nobody asks for a time before the bound, and for those from it on v3 answers until v4 begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.changes import Changes
from dovetail.changelog.rows import Positions, numbered
from dovetail.joins.inputs.timed import TimedNormalizer
from dovetail.joins.matching.tie_breaks import TieBreak
from dovetail.joins.state.arrangement import Arrangement, Matches
from dovetail.joins.state.order import EARLIEST, Times, times_of
from dovetail.joins.state.store import RunStore


@dataclass(frozen=True)
class Timeline:
    """Rows by join key and time; ``tie_break`` chooses between equal times. All of them have a key and a time."""

    rows: Arrangement
    tie_break: TieBreak

    def snapshot(self) -> Timeline:
        """What is held now, for reading: what is inserted later is not in it."""
        return replace(self, rows=self.rows.snapshot())

    def insert(self, changes: Changes) -> None:
        self.rows.insert(changes)

    def nearest(self, rows: pa.Table, at: Times, newest: bool, inclusive: bool, keys: Sequence[str]) -> Matches:
        """The row nearest to ``at[i]`` under the key of row i, if there is one; it counts once."""
        answer, found = self.rows.nearest_shared(rows, at, newest, inclusive, keys)
        return _each(answer, self.tie_break(found))

    def times(self, rows: pa.Table) -> Times:
        return times_of(rows.column(self.rows.order))


@dataclass(frozen=True)
class Versions:
    """A timeline that is asked for the newest row before a time alone, and for no time before a bound that rises: the
    rows ``since`` the bound, and of each key the newest ``before`` it.

    ends   a column that says that a row is none: from its time on, until the next one, the key has no row
    """

    since: Timeline
    before: Timeline
    ends: str = ""

    @staticmethod
    def of(side: TimedNormalizer, name: str, store: RunStore, tie_break: TieBreak, ends: str = "") -> Versions:
        since, before = (Timeline(side.arrangement(place, store), tie_break) for place in (name, f"{name}.before"))
        return Versions(since, before, ends)

    def snapshot(self) -> Versions:
        return replace(self, since=self.since.snapshot(), before=self.before.snapshot())

    def insert(self, changes: Changes) -> None:
        """A row before the bound comes too late to be asked for; a retraction takes it away where it is held yet."""
        bound = self.since.rows.expired
        behind = self.since.times(changes.table) < (EARLIEST if bound is None else bound)
        self.since.insert(changes.where(~behind))
        retracted = changes.where(behind).retractions
        if len(retracted):
            self.before.insert(self.before.rows.equal(retracted.table).changes.negated())

    def nearest(self, rows: pa.Table, at: Times, newest: bool, inclusive: bool, keys: Sequence[str]) -> Matches:
        """As ``Timeline.nearest``, of ``newest`` alone."""
        found = self.since.nearest(rows, at, newest, inclusive, keys)
        if self.before.rows.empty or len(found.probe) == len(at):
            return found
        others = np.delete(np.arange(len(at)), found.probe)
        older = self.before.nearest(rows.take(pa.array(others)), at[others], newest, inclusive, keys)
        probe = np.concatenate([found.probe, others[older.probe]])
        return Matches(probe, pa.concat_tables([found.rows, older.rows]).combine_chunks())

    def forget(self, bound: int, reach: int | None = None) -> None:
        """Let nobody ask for a time before ``bound``, nor for a row further than ``reach`` from its time."""
        gone = self.since.rows.expire(bound)
        if len(gone):
            newest = self._newest(gone)
            replaced = self.before.rows.probe(newest.table).summed().changes
            self.before.insert(Changes.concat([replaced.negated(), self._lasting(newest)]))
        if reach is not None:
            self.before.rows.expire(max(bound - reach, EARLIEST))

    def _newest(self, gone: Changes) -> Changes:
        """Of these rows the newest of each key."""
        groups, firsts = numbered(gone.table.select(list(self.since.rows.keys)))
        times = self.since.times(gone.table)
        latest = np.full(len(firsts), EARLIEST)
        np.maximum.at(latest, groups, times)
        newest = np.flatnonzero(times == latest[groups])
        return self.since.tie_break(Matches(groups[newest], gone.take(newest).table)).changes

    def _lasting(self, newest: Changes) -> Changes:
        """Those of the rows that may be asked for yet."""
        needed = np.ones(len(newest), dtype=np.bool_)
        if self.ends:
            needed &= ~pc.fill_null(newest.table.column(self.ends), False).to_numpy()
        if self.before.rows.expired is not None:
            needed &= self.before.times(newest.table) >= self.before.rows.expired
        return Changes.of(newest.where(needed).rows)


def _each(answer: Positions, found: Matches) -> Matches:
    """For each row its answer, by the number of the answer; ``found`` has one row or none for each number."""
    place = np.full(answer.max(initial=-1) + 1, -1, dtype=np.int64)
    place[found.probe] = np.arange(len(found.probe))
    chosen = place[answer]
    probe = np.flatnonzero(chosen >= 0)
    return Matches(probe, Changes.of(found.changes.take(chosen[probe]).rows).table)
