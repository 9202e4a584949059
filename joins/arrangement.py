"""An arrangement: the current rows of one input, as sorted runs, probed by key.

A run is ordered by one word a row: its upper 40 bits are those of the hash of the join key, its lower 24 bits are of
the hash of ``subkeys`` (the primary key, or the whole row, where rows must be found one by one; else 0). So all rows of
a join key lie together, and one row among them is found by the same binary search. Equal bits are never taken for equal
keys: candidates are compared with the key itself.

Sizes fall into tiers, each four times the one before. A run is merged with an older one of a lower tier, and four runs
of one tier are merged: a row is moved log4(n) times, and a probe visits at most three runs a tier. A merge adds up
equal rows; those that cancel out are gone: the garbage collection of overridden rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from changelog.changes import DELTA, Changes
from changelog.hashing import Hashes, row_hashes
from changelog.rows import Mask, Positions, any_null, equal_rows, expand, numpy_column
from joins.store import ENTRY_ROWS, SORT, Run, RunStore

_LOW = np.uint64((1 << 24) - 1)
_HIGH = ~_LOW
_FAN_IN = 4


@dataclass(frozen=True)
class Matches:
    """Pairs of a probing row (its position) and a row held, with the held row's count."""

    probe: Positions
    rows: pa.Table
    """The held rows, ``delta`` last."""

    @property
    def deltas(self) -> npt.NDArray[np.int32]:
        return numpy_column(self.rows, DELTA)

    def summed(self) -> Matches:
        """With the rows whose retraction lies in a run of its own taken out."""
        if Changes(self.rows).only_insertions:
            return self
        together = Changes(self.rows.add_column(0, "__probe", pa.array(self.probe))).consolidated().table
        return Matches(numpy_column(together, "__probe"), together.drop_columns(["__probe"]))


class Arrangement:
    """Rows of ``schema`` by ``keys``, kept in ``store`` under ``name``.

    subkeys    the columns by which single rows are found: the primary key for ``current``, all columns for ``held``
    null_safe  per key column, whether NULL equals NULL; a key with another NULL matches nothing
    """

    def __init__(
        self,
        store: RunStore,
        name: str,
        schema: pa.Schema,
        keys: Sequence[str],
        subkeys: Sequence[str] = (),
        null_safe: Sequence[bool] = (),
    ) -> None:
        self._store = store
        self._name = name
        self.schema = schema
        self.keys = tuple(keys)
        self.subkeys = tuple(subkeys)
        self.null_safe = tuple(null_safe) or (False,) * len(self.keys)
        self._runs = store.runs.setdefault(name, [])
        self._open_entries()

    def _open_entries(self) -> None:
        """Sort the entries that were read back into one run; they stay its entries."""
        entries = self._store.unsorted.pop(self._name, [])
        if entries:
            changes = Changes(pa.concat_tables([table for _, table in entries]).combine_chunks())
            rows_written = len(changes)
            run = self._sorted_run(changes, tuple(entry_id for entry_id, _ in entries), rows_written)
            merged = self._summed(run.table, run.entries, rows_written)
            self._runs.append(merged)

    # -- writing

    def insert(self, changes: Changes) -> None:
        """Add ``changes``; a retraction cancels its row when their runs merge."""
        if len(changes):
            self._runs.append(self._sorted_run(changes, self._store.write(self._name, changes.table), len(changes)))
            self._merge()

    def sort_words(
        self, rows: pa.Table, keys: Sequence[str] | None = None, subkeys: Sequence[str] | None = None
    ) -> Hashes:
        """The ordering word of each row; ``keys`` and ``subkeys`` name its columns where they differ from ours."""
        words = row_hashes(rows, self.keys if keys is None else keys) & _HIGH
        if self.subkeys:
            words |= row_hashes(rows, self.subkeys if subkeys is None else subkeys) & _LOW
        return words

    def _sorted_run(self, changes: Changes, entries: tuple[int, ...], durable_rows: int) -> Run:
        words = self.sort_words(changes.table)
        order = np.argsort(words, kind="stable")
        table = changes.table.take(pa.array(order)).append_column(SORT, pa.array(words[order]))
        return self._run(table, entries, durable_rows)

    def _run(self, table: pa.Table, entries: tuple[int, ...], durable_rows: int) -> Run:
        table = table.combine_chunks()
        unit = bool((table.column(DELTA).to_numpy() == 1).all())
        return Run(self._store.new_id(), table, unit, self._is_clean(table), entries, durable_rows)

    def _is_clean(self, table: pa.Table) -> bool:
        words = table.column(SORT).to_numpy() & _HIGH
        after = np.flatnonzero(words[1:] == words[:-1]) + 1
        if len(after) == 0 or not self.keys:
            return True
        keys = table.select(self.keys)
        pairs = [(name, name) for name in self.keys]
        return bool(equal_rows(keys.take(after), keys.take(after - 1), pairs, [True] * len(pairs)).all())

    def _merge(self) -> None:
        while count := _to_merge([_tier(run) for run in self._runs]):
            merging = self._runs[-count:]
            del self._runs[-count:]
            merged = self._merged(merging)
            if len(merged):
                self._runs.append(merged)

    def _merged(self, runs: Sequence[Run]) -> Run:
        table = pa.concat_tables([run.table for run in runs]).combine_chunks()
        order = np.argsort(table.column(SORT).to_numpy(), kind="stable")
        entries = tuple(entry for run in runs for entry in run.entries)
        return self._summed(table.take(pa.array(order)), entries, sum(run.durable_rows for run in runs))

    def _summed(self, table: pa.Table, entries: tuple[int, ...], durable_rows: int) -> Run:
        """``table`` (sorted) with equal rows added up, and its entries written anew if that pays."""
        table = _without_cancelled(table)
        if table.num_rows <= ENTRY_ROWS < durable_rows or table.num_rows * 2 <= durable_rows or _small(table, entries):
            self._store.discard(entries)
            entries = self._store.write(self._name, table.drop_columns([SORT]))
            durable_rows = table.num_rows
        return self._run(table, entries, durable_rows)

    # -- reading

    def probe(self, rows: pa.Table, keys: Sequence[str] | None = None) -> Matches:
        """Every held row under the join key of each of ``rows``, whose key columns are ``keys`` (ours if left out)."""
        names = self.keys if keys is None else tuple(keys)
        needles = _Needles(row_hashes(rows, names) & _HIGH)
        owners, parts = [], []
        for run in self._runs:
            low, high = needles.span(run)
            probe, held = expand(low, high)
            candidates = run.table.take(pa.array(held)).drop_columns([SORT])
            agree = self._agree(rows, probe, candidates, names)
            owners.append(probe if agree.all() else probe[agree])
            parts.append(candidates if agree.all() else candidates.take(pa.array(np.flatnonzero(agree))))
        return self._matches(owners, parts)

    def _agree(self, rows: pa.Table, probe: Positions, candidates: pa.Table, names: Sequence[str]) -> Mask:
        if not names:
            return np.ones(len(probe), dtype=np.bool_)
        probing = rows.select(list(names)).take(pa.array(probe))
        return equal_rows(probing, candidates, list(zip(names, self.keys, strict=True)), self.null_safe)

    def _matches(self, owners: list[Positions], parts: list[pa.Table]) -> Matches:
        if not parts:
            return Matches(np.zeros(0, dtype=np.int64), Changes.empty(self.schema).table)
        return Matches(np.concatenate(owners), pa.concat_tables(parts).combine_chunks())

    def counts(self, rows: pa.Table, keys: Sequence[str] | None = None) -> npt.NDArray[np.int64]:
        """How many rows are held under the join key of each of ``rows``."""
        names = self.keys if keys is None else tuple(keys)
        needles = _Needles(row_hashes(rows, names) & _HIGH)
        total = np.zeros(rows.num_rows, dtype=np.int64)
        for run in self._runs:
            total += self._counts_in(run, rows, needles, names)
        unmatchable = any_null(rows, [name for name, safe in zip(names, self.null_safe, strict=True) if not safe])
        total[unmatchable] = 0
        return total

    def _counts_in(self, run: Run, rows: pa.Table, needles: _Needles, names: Sequence[str]) -> npt.NDArray[np.int64]:
        low, high = needles.span(run)
        if not run.clean:
            probe, held = expand(low, high)
            agree = self._agree(rows, probe, run.table.take(pa.array(held)), names)
            weights = run.deltas[held[agree]]
            return np.bincount(probe[agree], weights=weights, minlength=rows.num_rows).astype(np.int64)
        found = np.flatnonzero(high > low)
        agree = self._agree(rows, found, run.table.take(pa.array(low[found])), names)
        counts = np.zeros(rows.num_rows, dtype=np.int64)
        real = found[agree]
        counts[real] = high[real] - low[real] if run.unit else _sums(run, low[real], high[real])
        return counts

    def current(self, rows: pa.Table, subkeys: Sequence[str]) -> tuple[Positions, pa.Table]:
        """The row held under the primary key of each of ``rows``: positions of those that have one, and the row held.

        ``rows`` have our key and subkey columns. At most one row is held per primary key, and each change to it was
        inserted whole (-1 old, +1 new), so the newest run that knows a primary key decides.
        """
        words = self.sort_words(rows)
        open_rows = np.arange(rows.num_rows)
        owners, parts = [], []
        pairs = [(name, name) for name in subkeys]
        for run in reversed(self._runs):
            low, high = _Needles(words[open_rows], exact=True).span(run)
            probe, held = expand(low, high)
            candidates = run.table.take(pa.array(held)).drop_columns([SORT])
            probing = rows.select(list(subkeys)).take(pa.array(open_rows[probe]))
            same = equal_rows(probing, candidates, pairs, [True] * len(pairs))
            present = same & (candidates.column(DELTA).to_numpy() > 0)
            owners.append(open_rows[probe[present]])
            parts.append(candidates.take(pa.array(np.flatnonzero(present))))
            open_rows = np.delete(open_rows, np.unique(probe[same]))
        found = self._matches(owners, parts)
        return found.probe, found.rows.drop_columns([DELTA])

    def equal(self, rows: pa.Table) -> Matches:
        """The rows held that equal each of ``rows`` in the subkey columns, with what they add up to; none below one.

        ``rows`` have our key and subkey columns.
        """
        needles = _Needles(self.sort_words(rows), exact=True)
        pairs = [(name, name) for name in self.subkeys]
        owners, parts = [], []
        for run in self._runs:
            low, high = needles.span(run)
            probe, position = expand(low, high)
            candidates = run.table.take(pa.array(position)).drop_columns([SORT])
            probing = rows.select(list(self.subkeys)).take(pa.array(probe))
            same = equal_rows(probing, candidates, pairs, [True] * len(pairs))
            owners.append(probe[same])
            parts.append(candidates.filter(pa.array(same)))
        return self._matches(owners, parts).summed()


class _Needles:
    """Words to be searched for. Searching in their order is several times faster than at random: it stays in the cache.

    exact   a whole word is searched for, not only its upper bits
    """

    def __init__(self, words: Hashes, exact: bool = False) -> None:
        self._order = np.argsort(words)
        self._low = words[self._order]
        self._high = self._low if exact else self._low | _LOW

    def span(self, run: Run) -> tuple[Positions, Positions]:
        """For each needle, the half-open range of its rows in ``run``."""
        low, high = np.empty_like(self._order), np.empty_like(self._order)
        low[self._order] = np.searchsorted(run.sort, self._low, "left")
        high[self._order] = np.searchsorted(run.sort, self._high, "right")
        return low, high


def _sums(run: Run, low: Positions, high: Positions) -> npt.NDArray[np.int64]:
    prefix = np.concatenate(([0], np.cumsum(run.deltas, dtype=np.int64)))
    return prefix[high] - prefix[low]


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


def _without_cancelled(table: pa.Table) -> pa.Table:
    """``table`` (sorted) with the rows of equal words added up where one of them is a retraction."""
    deltas = table.column(DELTA).to_numpy()
    if (deltas > 0).all():
        return table
    words = table.column(SORT).to_numpy()
    starts = np.flatnonzero(np.concatenate(([True], words[1:] != words[:-1])))
    touched = np.repeat(np.logical_or.reduceat(deltas < 0, starts), np.diff(np.append(starts, len(words))))
    summed = Changes(
        table.take(pa.array(np.flatnonzero(touched))).select([*_row_columns(table), SORT, DELTA])
    ).consolidated()
    kept = table.take(pa.array(np.flatnonzero(~touched)))
    together = pa.concat_tables([kept, summed.table.select(table.column_names).cast(kept.schema)]).combine_chunks()
    order = np.argsort(together.column(SORT).to_numpy(), kind="stable")
    return together.take(pa.array(order))


def _row_columns(table: pa.Table) -> list[str]:
    return [name for name in table.column_names if name not in (SORT, DELTA)]
