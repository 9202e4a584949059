"""The sorted runs of one arrangement: what is added to them, when they merge, what expires, and their durable copy.

Sizes fall into tiers, each four times the one before. A run is merged with an older one of a lower tier, and four runs
of one tier are merged: a row is moved log4(n) times, and a search visits at most three runs a tier. A merge adds up
equal rows; those that cancel out are gone: the garbage collection of overridden rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from dovetail.changelog.changes import DELTA, Changes, Deltas
from dovetail.changelog.rows import Mask, Positions, equal_rows, numpy_column, where
from dovetail.joins.state.key_weights import weighed
from dovetail.joins.state.order import EARLIEST, Times, times_of
from dovetail.joins.state.run_search import HIGH
from dovetail.joins.state.store import ENTRY_ROWS, SORT, Run, RunStore
from dovetail.joins.state.time_search import by_word_and_time

_FAN_IN = 4


class Runs:
    """The runs kept in ``store`` under ``name``, oldest first.

    keys     the columns of the join key
    order    the column by which rows of one word are ordered; empty: none
    worded   gives a table its ordering words, as its last column SORT
    counted  equal rows become one, with the sum of their counts, whether one of them is a retraction or not
    """

    def __init__(
        self,
        store: RunStore,
        name: str,
        keys: Sequence[str],
        order: str,
        worded: Callable[[pa.Table], pa.Table],
        counted: bool = False,
    ) -> None:
        self._store, self._name = store, name
        self._keys, self._order, self._worded, self._counted = keys, order, worded, counted
        self._runs = store.runs.setdefault(name, [])
        self._open_entries()

    def _open_entries(self) -> None:
        """Sort the entries that were read back into one run; they stay its entries."""
        entries = self._store.unsorted.pop(self._name, [])
        if entries:
            table = pa.concat_tables([table for _, table in entries]).combine_chunks()
            live = table if self.expired is None else self._since(table, self.expired)
            merged = self._summed(self._sorted(self._worded(live)), tuple(of for of, _ in entries), table.num_rows)
            if len(merged):
                self._runs.append(merged)

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs)

    def __reversed__(self) -> Iterator[Run]:
        return reversed(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    def times(self, table: pa.Table) -> Times:
        return times_of(table.column(self._order))

    @property
    def expired(self) -> int | None:
        """The greatest bound behind which rows were removed; None if none was."""
        return self._store.scalars.get(self._expired)

    @property
    def _expired(self) -> str:
        return f"expired.{self._name}"

    def add(self, changes: Changes) -> None:
        entries = self._store.write(self._name, changes.table)
        self._runs.append(self._run(self._sorted(self._worded(changes.table)), entries, len(changes)))
        self._merge()

    def expire(self, bound: int) -> list[Changes]:
        """Remove the rows whose time is before ``bound``; those removed, by run."""
        self._store.scalars[self._expired] = max(bound, self._store.scalars.get(self._expired, bound))
        parts = []
        for position, run in reversed(list(enumerate(self._runs))):
            if run.since < bound:
                gone, rest = self._split(run, bound)
                parts.append(gone)
                self._runs[position : position + 1] = [rest] if rest is not None else []
        return parts[::-1]

    def _split(self, run: Run, bound: int) -> tuple[Changes, Run | None]:
        """The rows of ``run`` that are before ``bound`` only now, and what is left of it, if anything."""
        times = self.times(run.table)
        dead = times < bound
        gone = Changes(run.table.drop_columns([SORT]).take(pa.array(np.flatnonzero(dead & (times >= run.since)))))
        live = np.flatnonzero(~dead)
        if len(live) == 0:
            self._store.discard(run.entries)
            return gone, None
        if len(live) * 2 > len(run):
            return gone, replace(run, since=bound)
        return gone, self._summed(run.table.take(pa.array(live)), run.entries, run.durable_rows)

    def _sorted(self, table: pa.Table) -> pa.Table:
        words = numpy_column(table, SORT)
        order = by_word_and_time(words, self.times(table)) if self._order else np.argsort(words, kind="stable")
        return table.take(pa.array(order))

    def _run(self, table: pa.Table, entries: tuple[int, ...], durable_rows: int) -> Run:
        table = table.combine_chunks()
        unit = bool((table.column(DELTA).to_numpy() == 1).all())
        since = int(self.times(table).min()) if self._order and table.num_rows else EARLIEST
        weights = weighed(numpy_column(table, SORT) & HIGH)
        return Run(self._store.new_id(), table, unit, self._is_clean(table), entries, durable_rows, since, weights)

    def _is_clean(self, table: pa.Table) -> bool:
        words = table.column(SORT).to_numpy() & HIGH
        after = np.flatnonzero(words[1:] == words[:-1]) + 1
        if len(after) == 0 or not self._keys:
            return True
        keys = table.select(self._keys)
        pairs = [(name, name) for name in self._keys]
        return bool(equal_rows(keys.take(after), keys.take(after - 1), pairs, [True] * len(pairs)).all())

    def _merge(self) -> None:
        while count := _to_merge([_tier(run) for run in self._runs]):
            merging = self._runs[-count:]
            del self._runs[-count:]
            merged = self._merged(merging)
            if len(merged):
                self._runs.append(merged)

    def _merged(self, runs: Sequence[Run]) -> Run:
        tables = [self._since(run.table, run.since) if self._order else run.table for run in runs]
        entries = tuple(entry for run in runs for entry in run.entries)
        table = self._sorted(pa.concat_tables(tables).combine_chunks())
        return self._summed(table, entries, sum(run.durable_rows for run in runs))

    def _summed(self, table: pa.Table, entries: tuple[int, ...], durable_rows: int) -> Run:
        """``table`` (sorted) with equal rows added up, and its entries written anew if that pays."""
        table = self._without_cancelled(table)
        if table.num_rows <= ENTRY_ROWS < durable_rows or table.num_rows * 2 <= durable_rows or _small(table, entries):
            self._store.discard(entries)
            entries = self._store.write(self._name, table.drop_columns([SORT]))
            durable_rows = table.num_rows
        return self._run(table, entries, durable_rows)

    def _without_cancelled(self, table: pa.Table) -> pa.Table:
        """``table`` (sorted) with the rows of equal words, and times, added up where one of them is a retraction, or
        where rows are counted.
        """
        deltas = numpy_column(table, DELTA)
        if not self._counted and (deltas > 0).all():
            return table
        words = numpy_column(table, SORT)
        begins = words[1:] != words[:-1]
        if self._order:
            begins |= np.diff(self.times(table)) != 0
        starts = np.flatnonzero(np.concatenate(([True], begins))[: len(words)])
        touched = _shared(starts, len(words)) if self._counted else _beside_retractions(deltas, starts)
        names = [name for name in table.column_names if name not in (SORT, DELTA)]
        summed = Changes(table.take(pa.array(np.flatnonzero(touched))).select([*names, SORT, DELTA])).consolidated()
        kept = table.take(pa.array(np.flatnonzero(~touched)))
        together = pa.concat_tables([kept, summed.table.select(table.column_names).cast(kept.schema)])
        return self._sorted(together.combine_chunks())

    def _since(self, table: pa.Table, bound: int) -> pa.Table:
        return where(table, self.times(table) >= bound)


def _tier(run: Run) -> int:
    return (len(run).bit_length() - 1) // 2


def _to_merge(tiers: Sequence[int]) -> int:
    """How many of the newest runs are to be merged now; their tiers, oldest first, never rise once it says 0."""
    if len(tiers) >= 2 and tiers[-2] < tiers[-1]:
        return 2
    if len(tiers) >= _FAN_IN and tiers[-_FAN_IN] == tiers[-1]:
        return _FAN_IN
    return 0


def _small(table: pa.Table, entries: tuple[int, ...]) -> bool:
    """Many entries for few rows: each has a fixed cost, so they are worth one write."""
    return table.num_rows <= ENTRY_ROWS and len(entries) > 1


def _beside_retractions(deltas: Deltas, starts: Positions) -> Mask:
    """Which rows lie in a group with a retraction; the groups begin at ``starts``."""
    found: Mask = np.repeat(np.logical_or.reduceat(deltas < 0, starts), np.diff(np.append(starts, len(deltas))))
    return found


def _shared(starts: Positions, count: int) -> Mask:
    """Which of ``count`` rows lie in a group with others."""
    sizes = np.diff(np.append(starts, count))
    found: Mask = np.repeat(sizes > 1, sizes)
    return found
