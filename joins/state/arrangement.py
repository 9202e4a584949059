"""An arrangement: the current rows of one input, as sorted runs, probed by key.

A run is ordered by one word a row: its upper 40 bits are those of the hash of the join key, its lower 24 bits are of
the hash of ``subkeys`` (the primary key, or the whole row, where rows must be found one by one; else 0). So all rows of
a join key lie together, and one row among them is found by the same binary search. Equal bits are never taken for equal
keys: candidates are compared with the key itself.

An arrangement with an ``order`` keeps the rows of a join key in order of that column, a time, instead (the lower 24
bits are 0 then): rows near in time are found by a second binary search within the rows of the key. Rows behind a bound
**expire** together; they stay in their run, a prefix of each key, until they are half of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.changelog.changes import DELTA, Changes, Deltas
from dovetail.changelog.hashing import Hashes, row_hashes
from dovetail.changelog.rows import Mask, Positions, any_null, equal_rows, expand, numpy_column, where
from dovetail.joins.state.blocks import RunSpans, blocks, blocks_of_probes
from dovetail.joins.state.order import EARLIEST, LATEST, NEVER, Times, beyond
from dovetail.joins.state.partitioned_by import PartitionedBy
from dovetail.joins.state.run_search import HIGH, LOW, Probes, Spans, sums, taken
from dovetail.joins.state.runs import Runs
from dovetail.joins.state.store import SORT, KeyLayout, Run, RunStore
from dovetail.joins.state.time_search import Approach, bisected, by_word_and_time, covered, located

TimeWindow = tuple[Times, Times]
"""For each probing row the least and the greatest time it looks for."""


@dataclass(frozen=True)
class Matches:
    """Pairs of a probing row (its position) and a stored row, with the stored row's count."""

    probe: Positions
    rows: pa.Table
    """The stored rows, ``delta`` last."""

    @staticmethod
    def concat(parts: Iterable[Matches]) -> Matches:
        """One after the other; there is one at least."""
        found = list(parts)
        rows = pa.concat_tables([one.rows for one in found]).combine_chunks()
        return Matches(np.concatenate([one.probe for one in found]), rows)

    @property
    def changes(self) -> Changes:
        """The stored rows as insertions, and retractions that lie in a run of their own."""
        return Changes(self.rows)

    @property
    def deltas(self) -> Deltas:
        return self.changes.deltas

    def where(self, mask: Mask) -> Matches:
        """The pairs for which ``mask`` holds."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def take(self, positions: Positions) -> Matches:
        """The pairs at ``positions``, in their order."""
        return Matches(self.probe[positions], self.rows.take(pa.array(positions)))

    def unmatched(self, count: int) -> Mask:
        """Which of ``count`` probing rows found nothing."""
        alone = np.ones(count, dtype=np.bool_)
        alone[self.probe] = False
        return alone

    def summed(self) -> Matches:
        """With the rows whose retraction lies in a run of its own taken out."""
        if self.changes.only_insertions:
            return self
        together = Changes(self.rows.add_column(0, "__probe", pa.array(self.probe))).consolidated().table
        return Matches(numpy_column(together, "__probe"), together.drop_columns(["__probe"]))


class Arrangement:
    """Rows of ``schema`` by ``keys``, kept in ``store`` under ``name``.

    subkeys    the columns by which single rows are found: the primary key for ``current``, all columns for ``equal``
    null_safe  per key column, whether NULL equals NULL; a key with another NULL matches nothing
    order      a timestamp or integer column by which the rows of a key are ordered; empty: none
    partitioned_by  how its rows came into this bucket; left out: by ``keys``
    counted    merges make one of equal rows, with the sum of their counts: where rows are few and come often
    """

    def __init__(
        self,
        store: RunStore,
        name: str,
        schema: pa.Schema,
        keys: Sequence[str],
        subkeys: Sequence[str] = (),
        null_safe: Sequence[bool] = (),
        order: str = "",
        partitioned_by: PartitionedBy | None = None,
        counted: bool = False,
    ) -> None:
        self._store = store
        self._name = name
        self.schema = schema
        self.keys = tuple(keys)
        self.subkeys = tuple(subkeys)
        self.null_safe = tuple(null_safe) or (False,) * len(self.keys)
        self.order = order
        self._counted = counted
        store.partitioned_by[name] = partitioned_by or PartitionedBy(self.keys)
        store.layouts[name] = KeyLayout(self.keys, tuple(self.strict()), order)
        # Not a method of ours: a cycle of references would keep a portion in memory when its turn is over.
        worded = partial(_worded, keys=self.keys, subkeys=() if order else self.subkeys)
        self._runs = Runs(store, name, self.keys, order, worded, counted)

    @property
    def empty(self) -> bool:
        return not self._runs

    @property
    def size(self) -> int:
        """How many rows its runs hold, with those that cancel out once they are merged."""
        return sum(map(len, self._runs))

    def snapshot(self) -> Arrangement:
        """What is held now, for reading: what is inserted later is not in it."""
        store = RunStore({self._name: [*self._runs]}, dict(self._store.scalars))
        return Arrangement(
            store,
            self._name,
            self.schema,
            self.keys,
            self.subkeys,
            self.null_safe,
            self.order,
            counted=self._counted,
        )

    # -- writing

    def insert(self, changes: Changes) -> None:
        """Add ``changes``; a retraction cancels its row when their runs merge."""
        if len(changes):
            self._runs.add(changes)

    def expire(self, bound: int) -> Changes:
        """Remove all rows whose time is before ``bound``; those that were live.

        Rows without a time stay. Rows inserted behind a bound that was set before are held until the next call, but not
        over a restart: a host calls once a batch.
        """
        gone = Changes.concat([Changes.empty(self.schema), *self._runs.expire(bound)])
        return gone if gone.only_insertions else gone.consolidated()

    @property
    def expired(self) -> int | None:
        """The greatest bound behind which rows were removed; None if none was."""
        return self._runs.expired

    def sort_words(
        self, rows: pa.Table, keys: Sequence[str] | None = None, subkeys: Sequence[str] | None = None
    ) -> Hashes:
        """The ordering word of each row; ``keys`` and ``subkeys`` name its columns where they differ from ours."""
        finer = () if self.order or not self.subkeys else self.subkeys if subkeys is None else subkeys
        return _words(rows, self.keys if keys is None else keys, finer)

    # -- reading

    def everything(self) -> Changes:
        """All that is held."""
        tables = [run.table.drop_columns([SORT]) for run in self._runs]
        return Changes.concat([Changes.empty(self.schema), *map(Changes, tables)]).consolidated()

    def probe(self, rows: pa.Table, keys: Sequence[str] | None = None) -> Matches:
        """Every stored row under the join key of each of ``rows``; its key columns are ``keys`` (ours if left out)."""
        return self._under(rows, keys, self._candidates(rows, keys))

    def probed(self, rows: pa.Table, keys: Sequence[str] | None = None) -> Iterator[Matches]:
        """As ``probe``, in blocks of a bounded number of pairs. What a row finds may lie in several of them, a
        retraction in another than its row.
        """
        return (self._under(rows, keys, block) for block in blocks(self._candidates(rows, keys)))

    def probed_whole(self, rows: pa.Table, keys: Sequence[str] | None = None) -> Iterator[Matches]:
        """As ``probed``, with all that a row finds in one block."""
        found = self._candidates(rows, keys)
        return (self._under(rows, keys, block) for block in blocks_of_probes(found, rows.num_rows))

    def _candidates(self, rows: pa.Table, keys: Sequence[str] | None) -> list[RunSpans]:
        """By run, the live rows that have the hash of a probe's join key."""
        probes = Probes(row_hashes(rows, self.keys if keys is None else tuple(keys)) & HIGH)
        numbers = np.arange(rows.num_rows)
        return [RunSpans(run, Spans(numbers, *self._live_spans(run, probes))) for run in self._runs]

    def _under(self, rows: pa.Table, keys: Sequence[str] | None, found: Sequence[RunSpans]) -> Matches:
        """Those of the candidates ``found`` that have the key of their probe."""
        names = self.keys if keys is None else tuple(keys)
        owners, parts = [], []
        for one in found:
            span, positions = expand(one.spans.low, one.spans.high)
            probe, candidates = one.spans.probe[span], taken(one.run, positions)
            agree = self._agree(rows, probe, candidates, names)
            owners.append(probe if agree.all() else probe[agree])
            parts.append(where(candidates, agree))
        return self._matches(owners, parts)

    def strict(self, names: Sequence[str] | None = None) -> list[str]:
        """The key columns (called ``names`` by who asks) in which NULL equals nothing."""
        called = self.keys if names is None else names
        return [name for name, safe in zip(called, self.null_safe, strict=True) if not safe]

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
        return self._counts(rows, keys, None)

    def _counts(self, rows: pa.Table, keys: Sequence[str] | None, window: TimeWindow | None) -> npt.NDArray[np.int64]:
        total = np.zeros(rows.num_rows, dtype=np.int64)
        for run, spans in self._agreeing(rows, keys, window):
            counts = spans.high - spans.low if run.unit else sums(run, spans.low, spans.high)
            np.add.at(total, spans.probe, counts)
        return total

    def between(self, rows: pa.Table, low: Times, high: Times, keys: Sequence[str] | None = None) -> Matches:
        """Every stored row under the join key of row i whose time is from ``low[i]`` to ``high[i]``, both inclusive.

        As ``probe``: a retraction that lies in a run of its own is found beside its row.
        """
        return self._within(self._spans_between(rows, low, high, keys))

    def found_in_blocks(
        self, rows: pa.Table, low: Times, high: Times, keys: Sequence[str] | None = None
    ) -> Iterator[Matches]:
        """As ``between``, in blocks, as those of ``probed``."""
        return map(self._within, blocks(self._spans_between(rows, low, high, keys)))

    def _spans_between(self, rows: pa.Table, low: Times, high: Times, keys: Sequence[str] | None) -> list[RunSpans]:
        return [RunSpans(run, spans) for run, spans in self._agreeing(rows, keys, (low, high))]

    def _within(self, found: Sequence[RunSpans]) -> Matches:
        owners, parts = [], []
        for one in found:
            span, positions = expand(one.spans.low, one.spans.high)
            owners.append(one.spans.probe[span])
            parts.append(taken(one.run, positions))
        return self._matches(owners, parts)

    def counts_between(
        self, rows: pa.Table, low: Times, high: Times, keys: Sequence[str] | None = None
    ) -> npt.NDArray[np.int64]:
        """How many rows ``between`` would find for each of ``rows``, retractions subtracted."""
        return self._counts(rows, keys, (low, high))

    def found_between(
        self,
        rows: pa.Table,
        low: Times,
        high: Times,
        keys: Sequence[str] | None = None,
        holds: Callable[[Positions, pa.Table], Mask] | None = None,
    ) -> Changes:
        """The live rows that one of ``rows`` or more find by ``between``, each once.

        holds(positions in rows, stored rows)   which pairs count
        """
        parts = [Changes.empty(self.schema)]
        for run, spans in self._agreeing(rows, keys, (low, high)):
            positions = covered(spans.low, spans.high) if holds is None else _that_hold(run, spans, holds)
            parts.append(Changes(taken(run, positions)))
        found = Changes.concat(parts)
        return found if found.only_insertions else found.consolidated()

    def nearest(
        self, rows: pa.Table, at: Times, newest: bool, inclusive: bool, keys: Sequence[str] | None = None
    ) -> Matches:
        """The live rows under the join key of row i whose time is nearest to ``at[i]``; all of them where several are.

        newest     the greatest time that is not after ``at[i]``; else the least one that is not before it
        inclusive  ``at[i]`` itself may be that time
        """
        answer, found = self.nearest_shared(rows, at, newest, inclusive, keys)
        order = np.argsort(found.probe, kind="stable")
        low, high = (np.searchsorted(found.probe[order], answer, side) for side in ("left", "right"))
        probe, place = expand(low, high)
        return Matches(probe, found.rows.take(pa.array(order[place])))

    def nearest_shared(
        self, rows: pa.Table, at: Times, newest: bool, inclusive: bool, keys: Sequence[str] | None = None
    ) -> tuple[Positions, Matches]:
        """As ``nearest``, each answer once: for each of ``rows`` the number of its answer, and the rows by that number.

        Rows of one key between whose times there is none held have one answer. So many of them that find a time with
        many rows cost no more than their sum, not their product.
        """
        names = self.keys if keys is None else tuple(keys)
        bounds = at if inclusive else beyond(at, later=not newest)
        words = row_hashes(rows, names) & HIGH
        # In this order neighbours look at neighbouring rows: the search stays in the cache.
        order = by_word_and_time(words, bounds)
        times, spans = self._approached(words[order], bounds[order], newest)
        edges = sum((high if newest else low for low, high in spans), np.zeros_like(at))
        numbers, firsts = _alike(rows.select(list(names)).take(pa.array(order)), words[order], edges)
        answer = np.empty_like(order)
        answer[order] = numbers
        approach = Approach(times, [(low[firsts], high[firsts]) for low, high in spans], newest)
        probe_rows = (rows.select(list(names)) if names else rows).take(pa.array(order[firsts]))
        return answer, self._found_nearest(probe_rows, names, approach, newest)

    def _approached(self, words: Hashes, bounds: Times, newest: bool) -> tuple[list[Times], list[TimeWindow]]:
        """By run, the times, and for each word the span of the rows up to its bound, or from it on."""
        probes = Probes(words)
        times, spans = [], []
        for run in self._runs:
            low, high = self._live_spans(run, probes)
            times.append(self._runs.times(run.table))
            if newest:
                high = bisected(times[-1], (low, high), bounds, after=True)
            else:
                low = bisected(times[-1], (low, high), bounds, after=False)
                high = bisected(times[-1], (low, high), np.full(len(low), LATEST), after=True)
            spans.append((low, high))
        return times, spans

    def _found_nearest(self, rows: pa.Table, names: Sequence[str], approach: Approach, newest: bool) -> Matches:
        open_rows = np.flatnonzero(~any_null(rows, self.strict(names)))
        owners, parts = [], []
        while len(open_rows := approach.unfinished(open_rows)):
            found = self._stepped(rows, names, open_rows, approach.step(open_rows))
            times = self._runs.times(found.rows)
            best = np.full(rows.num_rows, EARLIEST if newest else LATEST)
            (np.maximum if newest else np.minimum).at(best, found.probe, times)
            chosen = np.flatnonzero(times == best[found.probe])
            owners.append(found.probe[chosen])
            parts.append(found.rows.take(pa.array(chosen)))
            answered = np.zeros(rows.num_rows, dtype=np.bool_)
            answered[found.probe] = True
            open_rows = open_rows[~answered[open_rows]]
        return self._matches(owners, parts)

    def _stepped(
        self, rows: pa.Table, names: Sequence[str], probes: Positions, spans: Sequence[tuple[Positions, Positions]]
    ) -> Matches:
        """The live rows in the spans of ``probes``, run by run, under their keys."""
        owners, parts = [], []
        for run, (low, high) in zip(self._runs, spans, strict=True):
            span, positions = expand(low, high)
            candidates = taken(run, positions)
            agree = self._agree(rows, probes[span], candidates, names)
            owners.append(probes[span][agree])
            parts.append(where(candidates, agree))
        return self._matches(owners, parts).summed()

    def _agreeing(
        self, rows: pa.Table, keys: Sequence[str] | None, window: TimeWindow | None
    ) -> Iterator[tuple[Run, Spans]]:
        """By run, the spans of rows that have the join key of a probe and, with ``window``, a time within it."""
        names = self.keys if keys is None else tuple(keys)
        probes = Probes(row_hashes(rows, names) & HIGH)
        if self.order and window is None:
            window = np.full(rows.num_rows, EARLIEST), np.full(rows.num_rows, NEVER)
        for run in self._runs:
            low, high = probes.span_in_order(run)
            spans = Spans(probes.order, low, high).only(low < high)
            if window is not None:
                spans = self._narrowed(run, spans, window)
            if not run.clean:
                spans = spans.single()
            first = run.table.select(self.keys).take(pa.array(spans.low))
            yield run, spans.only(self._agree(rows, spans.probe, first, names))

    def _narrowed(self, run: Run, spans: Spans, window: TimeWindow) -> Spans:
        """The parts of ``spans`` that lie within the window of their probe."""
        times = self._runs.times(run.table)
        earliest, latest = (bounds[spans.probe] for bounds in window)
        low = bisected(times, (spans.low, spans.high), np.maximum(earliest, run.since), after=False)
        high = bisected(times, (low, spans.high), latest, after=True)
        return Spans(spans.probe, low, high).only(low < high)

    def _live_spans(self, run: Run, probes: Probes) -> tuple[Positions, Positions]:
        """The span of each probe in ``run``, without the rows that have expired."""
        low, high = probes.span(run)
        if self.order:
            low = bisected(self._runs.times(run.table), (low, high), np.full(len(low), run.since), after=False)
        return low, high

    def current(self, rows: pa.Table, subkeys: Sequence[str]) -> tuple[Positions, pa.Table]:
        """The row held under the primary key of each of ``rows``: positions of those that have one, and the row held.

        ``rows`` have our key and subkey columns. At most one row is held per primary key, and each change to it was
        inserted whole (-1 old, +1 new), so the newest run that knows a primary key decides.
        """
        words, finer = self._exact_words(rows)
        open_rows = np.arange(rows.num_rows)
        owners, parts = [], []
        pairs = [(name, name) for name in subkeys]
        for run in reversed(self._runs):
            probe, positions = self._exact(run, words[open_rows], finer[open_rows])
            candidates = taken(run, positions)
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
        words, finer = self._exact_words(rows)
        pairs = [(name, name) for name in self.subkeys]
        owners, parts = [], []
        for run in self._runs:
            probe, position = self._exact(run, words, finer)
            candidates = taken(run, position)
            probing = rows.select(list(self.subkeys)).take(pa.array(probe))
            same = equal_rows(probing, candidates, pairs, [True] * len(pairs))
            owners.append(probe[same])
            parts.append(candidates.filter(pa.array(same)))
        return self._matches(owners, parts).summed()

    def _exact_words(self, rows: pa.Table) -> tuple[Hashes, Hashes]:
        """The words by which ``rows`` are found one by one: that of the key, and that of the subkeys, if not within."""
        words = self.sort_words(rows)
        return words, row_hashes(rows, self.subkeys) if self.order else words

    def _exact(self, run: Run, words: Hashes, finer: Hashes) -> tuple[Positions, Positions]:
        """Pairs of a probe and the position in ``run`` of a row whose key and subkeys have its hashes.

        Where the rows of a key are ordered by time all of them are looked at, but once, not for each probe.
        """
        if not self.order:
            return expand(*Probes(words, exact=True).span(run))
        positions = covered(*self._live_spans(run, Probes(words)))
        subkeys = run.table.select(self.subkeys).take(pa.array(positions))
        probe, place = located(finer, row_hashes(subkeys, self.subkeys))
        return probe, positions[place]


def _words(rows: pa.Table, keys: Sequence[str], subkeys: Sequence[str]) -> Hashes:
    words = row_hashes(rows, keys) & HIGH
    return words | (row_hashes(rows, subkeys) & LOW) if subkeys else words


def _worded(table: pa.Table, keys: Sequence[str], subkeys: Sequence[str]) -> pa.Table:
    return table.append_column(SORT, pa.array(_words(table, keys, subkeys)))


def _that_hold(run: Run, found: Spans, holds: Callable[[Positions, pa.Table], Mask]) -> Positions:
    """The rows of ``run`` that one of the probes finds for which they hold."""
    parts = [np.zeros(0, dtype=np.int64)]
    for block in blocks([RunSpans(run, found)]):
        for one in block:
            span, positions = expand(one.spans.low, one.spans.high)
            parts.append(np.unique(positions[holds(one.spans.probe[span], taken(run, positions))]))
    return np.unique(np.concatenate(parts))


def _alike(keys: pa.Table, words: Hashes, edges: Positions) -> tuple[Positions, Positions]:
    """Probes, in the order of their words and times, that look at the same rows: a number for each, the same for those
    alike, and the first of each number.

    edges   the sum over all runs of the positions where a probe's rows end: of probes of one key no edge falls while
            another rises, so their sums are equal only if all edges are
    """
    begins = np.concatenate(([True], (np.diff(words) != 0) | (np.diff(edges) != 0)))[: len(words)]
    numbers, firsts = np.cumsum(begins) - 1, np.flatnonzero(begins)
    pairs = [(name, name) for name in keys.column_names]
    same = equal_rows(keys, keys.take(pa.array(firsts[numbers])), pairs, [True] * len(pairs))
    collided = np.flatnonzero(~same)
    numbers[collided] = len(firsts) + np.arange(len(collided))
    return numbers, np.concatenate([firsts, collided])
