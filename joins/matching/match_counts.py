"""How often each own row has matched: the unmatched rows of a side under a residual condition, without the other side.

The **match count** of a row is the number of pairs that it is in: how often it stands, times how often the other rows
stand that it matches. It is the content of the inner join, projected to the own columns, so it changes as that does:
``d(L x R) = L x dR + dL x R'``. A row is unmatched where its count is 0.

    other   ──── r1 ──────── r2 ──────── -r1 ──────── -r2 ──▶
    own l     0 → 1        1 → 2        2 → 1        1 → 0
              -l                                      +l

Source: the degree tables of RisingWave's hash join; Gupta and Mumick, "Maintenance of Materialized Views" (IEEE Data
Engineering Bulletin, 1995).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dovetail.changelog.changes import Changes, Deltas, products
from dovetail.changelog.rows import Positions, numbered
from dovetail.joins.inputs.arrangement_view import ArrangementView
from dovetail.joins.matching.unmatched import Holds
from dovetail.joins.state.arrangement import Arrangement, Matches
from dovetail.joins.state.store import RunStore

_PAIRS = 1 << 20
"""The most pairs that are tested at once, save those of a single row."""


class MatchCounts:
    """The match counts of the rows of ``own``, kept under ``name`` for those that have any.

    Told of a batch in this order: ``others_change`` before either side has its changes, ``own_change`` when ``other``
    has them. Both give the change of the unmatched own rows.
    """

    def __init__(self, own: ArrangementView, other: ArrangementView, holds: Holds, store: RunStore, name: str) -> None:
        self._own, self._other, self._holds = own, other, holds
        self._pairs = Arrangement(store, name, own.schema, own.keys, own.schema.names, own.null_safe, counted=True)

    def others_change(self, others: Changes) -> Changes:
        """``others`` are about to come: held rows that lose their last match are unmatched, those with a first not."""
        met = _Met.none(self._own.schema)
        for _, block in _blocks(others, self._own.counts(others.table, self._other.keys)):
            found = self._own.probe(block.table, self._other.keys).summed()
            found = found.where(self._holds(found.rows, block.take(found.probe).table))
            met = met.together(_Met.of(found, block.deltas))
        before = self._counts_of(met.rows)
        after = before + met.moved
        self._insert(met.rows, met.moved)
        flipped = np.flatnonzero((before == 0) != (after == 0))
        multiplicity = met.multiplicity[flipped]
        return Changes.with_deltas(
            met.rows.take(pa.array(flipped)), np.where(after[flipped] == 0, multiplicity, -multiplicity)
        )

    def own_change(self, own: Changes) -> Changes:
        """``own`` comes or goes: those of its rows that match nothing."""
        matched = np.zeros(len(own), dtype=np.int64)
        for first, block in _blocks(own, self._other.counts(own.table, self._own.keys)):
            found = self._other.probe(block.table, self._own.keys).summed()
            found = found.where(self._holds(block.take(found.probe).table, found.rows))
            np.add.at(matched, first + found.probe, found.deltas)
        self._insert(own.table, products(own.deltas, matched))
        return own.where(matched == 0)

    def _insert(self, rows: pa.Table, counts: Deltas) -> None:
        pairs = Changes.with_deltas(rows.select(self._own.schema.names), counts)
        self._pairs.insert(pairs.where(counts != 0).consolidated())

    def _counts_of(self, rows: pa.Table) -> Deltas:
        """The match count of each of some different rows."""
        counts = np.zeros(rows.num_rows, dtype=np.int64)
        found = self._pairs.equal(rows)
        np.add.at(counts, found.probe, found.deltas)
        return counts


@dataclass(frozen=True)
class _Met:
    """Held rows that some others match, each once: so a hot key of both sides is no more rows than it has on one.

    moved         by how much their match counts change
    multiplicity  how often they stand
    """

    rows: pa.Table
    moved: Deltas
    multiplicity: Deltas

    @staticmethod
    def none(schema: pa.Schema) -> _Met:
        return _Met(schema.empty_table(), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))

    @staticmethod
    def of(found: Matches, others: Deltas) -> _Met:
        """``found``: held rows and the positions of those that match them, which come ``others`` times."""
        rows = found.changes.rows
        numbers, firsts = numbered(rows)
        moved = np.zeros(len(firsts), dtype=np.int64)
        np.add.at(moved, numbers, products(others[found.probe], found.deltas))
        return _Met(rows.take(pa.array(firsts)), moved, _multiplicity(found, numbers, len(firsts)))

    def together(self, further: _Met) -> _Met:
        rows = pa.concat_tables([self.rows, further.rows.cast(self.rows.schema)]).combine_chunks()
        numbers, firsts = numbered(rows)
        moved = np.zeros(len(firsts), dtype=np.int64)
        np.add.at(moved, numbers, np.concatenate([self.moved, further.moved]))
        return _Met(
            rows.take(pa.array(firsts)), moved, np.concatenate([self.multiplicity, further.multiplicity])[firsts]
        )


def _multiplicity(found: Matches, numbers: Positions, count: int) -> Deltas:
    """How often each of the ``count`` different rows of ``found`` stands: what one of those that found it says."""
    finder = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(finder, numbers, found.probe)
    once = found.probe == finder[numbers]
    multiplicity = np.zeros(count, dtype=np.int64)
    np.add.at(multiplicity, numbers[once], found.deltas[once])
    return multiplicity


def _blocks(changes: Changes, pairs: Positions) -> Iterator[tuple[int, Changes]]:
    """``changes`` in blocks of at most ``_PAIRS`` of their pairs, each with the position of its first."""
    if len(changes) == 0:
        return
    through = np.cumsum(pairs)
    first = 0
    while first < len(changes):
        taken = through[first - 1] if first else 0
        after = max(first + 1, int(np.searchsorted(through, taken + _PAIRS, "right")))
        yield first, changes.take(np.arange(first, after))
        first = after
