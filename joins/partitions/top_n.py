"""Top n: the rows of each partition whose rank is within bounds.

**Definition.** Rows that agree in the keys of the port form a partition; NULL is a key like any other, without keys all
rows are one. In the order of a partition each row has a row number, a rank or a dense rank; those from ``first`` to
``last`` are the output, with that number where it is asked for. Of rows that the order leaves equal the row itself
decides which comes first. The output is the difference that a batch makes: -1 of each row that leaves, +1 of each that
enters; where the number is a column, a row whose number changes does both.

**State.** Of an input without retractions the rows that rank no later than ``last``: none behind them can come to the
fore. Else all rows of each partition, in two parts, so that a batch reads few of them:

    front   those that rank no later than ``last``, and up to 2 * 64 behind them
    rest    all others: none of them is before one of the front

Rows before the last of the front come and go there; the others in the rest, unread. When the front has none behind
``last`` any more and there is a rest, that of the partition is read, and its first rows come to the front.

Source: the top-n operators of Flink and RisingWave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from dovetail.changelog.changes import Changes, Deltas
from dovetail.changelog.rows import Mask, Positions, expand
from dovetail.joins.dataflow.ports import Port
from dovetail.joins.dataflow.specification import OperatorSpec
from dovetail.joins.inputs.change_normalizer import ChangeNormalizer
from dovetail.joins.partitions.ordering import Rank, SortKey, begins, firsts, in_order, partitions_of, running
from dovetail.joins.state.arrangement import Arrangement
from dovetail.joins.state.store import RunStore

_SPARE = 64
"""How many rows behind the last of the output come to the front at once."""


@dataclass(frozen=True)
class TopNSpec(OperatorSpec):
    """The rows of each partition, by the keys of the port, whose rank in ``order`` is from ``first`` to ``last``.

    number      the column of the output that holds the rank; '' if none does
    insertions  the input has no retractions: less is kept
    """

    port: Port
    order: tuple[SortKey, ...]
    rank: Rank
    first: int
    last: int
    number: str = ""
    insertions: bool = False

    @property
    def ports(self) -> tuple[Port, ...]:
        return (self.port,)

    def open(self, store: RunStore, name: str) -> TopNOperator:
        return TopNOperator(self, store, name)


class TopNOperator:
    """``on_batch([rows]) -> changes`` of the first rows."""

    def __init__(self, spec: TopNSpec, store: RunStore, name: str) -> None:
        port = spec.port
        safe = (True,) * len(port.keys)
        self._spec = spec
        self._normalizer = ChangeNormalizer.of(port, store, f"{name}.rows", safe)
        self._schema = pa.schema([field.with_nullable(True) for field in port.schema])
        self._front = Arrangement(store, f"{name}.front", self._schema, port.keys, (), safe)
        self._rest = Arrangement(store, f"{name}.rest", self._schema, port.keys, (), safe)

    @property
    def dangling(self) -> int:
        return self._normalizer.dangling

    def on_batch(self, inputs: Sequence[pa.Table | None]) -> Changes:
        (rows,) = inputs
        changes = self._normalizer.normalize_and_store(rows)
        if len(changes) == 0:
            return Changes.empty(self._output)
        changes = Changes.with_deltas(changes.rows.select(self._schema.names).cast(self._schema), changes.deltas)
        partition, partitions = partitions_of(changes.rows, self._spec.port.keys)
        front = self._front.probe(partitions).summed()
        has_rest = self._rest.counts(partitions) > 0
        lined = _Lined.of(self._spec, front.changes, front.probe, changes, partition)
        lined = self._without_those_behind(lined, has_rest)
        lined = self._with_the_rest(lined, partitions, has_rest)
        self._remember(lined)
        return Changes.concat(
            [self._shown(lined, lined.before).negated(), self._shown(lined, lined.after)]
        ).consolidated()

    @property
    def _output(self) -> pa.Schema:
        return self._schema if not self._spec.number else self._schema.append(pa.field(self._spec.number, pa.int64()))

    def _without_those_behind(self, lined: _Lined, has_rest: Mask) -> _Lined:
        """``lined`` without the changes of rows behind the front, which go to the rest, where there is one."""
        behind = has_rest[lined.partition] & (np.arange(len(lined)) > lined.last_of_front(len(has_rest)))
        if not behind.any():
            return lined
        self._rest.insert(Changes.with_deltas(lined.rows, lined.after).take(np.flatnonzero(behind)))
        return lined.where(~behind)

    def _with_the_rest(self, lined: _Lined, partitions: pa.Table, has_rest: Mask) -> _Lined:
        """``lined`` with the rest of the partitions whose front has run out."""
        runs_on = np.zeros(len(has_rest), dtype=np.bool_)
        runs_on[lined.partition[lined.behind]] = True
        starved = np.flatnonzero(has_rest & ~runs_on)
        if len(starved) == 0:
            return lined
        found = self._rest.probe(partitions.take(pa.array(starved))).summed()
        self._rest.insert(found.changes.negated())
        return lined.joined(found.changes, starved[found.probe])

    def _remember(self, lined: _Lined) -> None:
        """Let the first rows, with some to spare, be the front."""
        spare = 0 if self._spec.insertions else _SPARE
        behind = lined.behind
        number = running(behind.astype(np.int64), begins(lined.rows, lined.partition, ()))
        most = np.zeros(int(lined.partition.max(initial=-1)) + 1, dtype=np.int64)
        np.maximum.at(most, lined.partition, number)
        dropped = behind & (number > spare) & (most[lined.partition] > 2 * spare)
        kept = np.where(dropped, 0, lined.after)
        self._front.insert(lined.changed(kept - lined.before))
        if not self._spec.insertions:
            self._rest.insert(lined.changed(np.where(dropped, lined.after, 0)))

    def _shown(self, lined: _Lined, counts: Deltas) -> Changes:
        """The output of the rows in ``lined`` that stand ``counts`` times each."""
        spec = self._spec
        alive = lined.where(counts > 0)
        counts = counts[counts > 0]
        ranks = firsts(alive.rows, alive.partition, spec.order, counts, spec.rank)
        if spec.rank is Rank.ROW_NUMBER:
            low, high = np.maximum(ranks, spec.first), np.minimum(ranks + counts, spec.last + 1)
            if spec.number:
                row, ranks = expand(low, np.maximum(high, low))
                alive, counts = alive.take(row), np.ones(len(row), dtype=np.int64)
            else:
                counts = np.maximum(high - low, 0)
        else:
            counts = np.where((ranks >= spec.first) & (ranks <= spec.last), counts, 0)
        rows = alive.rows if not spec.number else alive.rows.append_column(spec.number, pa.array(ranks))
        shown = Changes.with_deltas(rows.cast(self._output), counts)
        return shown.where(counts > 0)


@dataclass(frozen=True)
class _Lined:
    """Different rows in the order of their partitions, and how often each stands before a batch and after it."""

    spec: TopNSpec
    rows: pa.Table
    partition: Positions
    before: Deltas
    after: Deltas

    @staticmethod
    def of(spec: TopNSpec, held: Changes, of_held: Positions, changes: Changes, of_changes: Positions) -> _Lined:
        """``held`` rows and what changes them."""
        rows = pa.concat_tables([held.rows, changes.rows]).combine_chunks()
        before = np.concatenate([held.deltas, np.zeros(len(changes), dtype=np.int64)])
        after = np.concatenate([held.deltas, changes.deltas])
        return _Lined(spec, rows, np.concatenate([of_held, of_changes]), before, after).lined()

    def lined(self) -> _Lined:
        """In order, equal rows together."""
        found = self.take(in_order(self.rows, self.partition, self.spec.order))
        starts = np.flatnonzero(begins(found.rows, found.partition, found.rows.column_names))
        if len(starts) == 0:
            return found
        before, after = (np.add.reduceat(counts, starts) for counts in (found.before, found.after))
        return replace(found.take(starts), before=before, after=after)

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    def take(self, positions: Positions) -> _Lined:
        rows = self.rows.take(pa.array(positions))
        return _Lined(self.spec, rows, self.partition[positions], self.before[positions], self.after[positions])

    def where(self, mask: Mask) -> _Lined:
        return self.take(np.flatnonzero(mask))

    def joined(self, rows: Changes, partition: Positions) -> _Lined:
        """With further rows that stood nowhere before."""
        every = pa.concat_tables([self.rows, rows.rows]).combine_chunks()
        before = np.concatenate([self.before, np.zeros(len(rows), dtype=np.int64)])
        after = np.concatenate([self.after, rows.deltas])
        return _Lined(self.spec, every, np.concatenate([self.partition, partition]), before, after).lined()

    def changed(self, deltas: Deltas) -> Changes:
        return Changes.with_deltas(self.rows, deltas).where(deltas != 0)

    def last_of_front(self, partitions: int) -> Positions:
        """For each row the position of the last one of its partition that was held."""
        last = np.full(partitions, -1, dtype=np.int64)
        held = np.flatnonzero(self.before)
        np.maximum.at(last, self.partition[held], held)
        return last[self.partition]

    @property
    def behind(self) -> Mask:
        """Which of those that stand afterwards rank later than the last of the output, all of them or some."""
        alive = np.flatnonzero(self.after > 0)
        there, counts = self.take(alive), self.after[alive]
        ranks = firsts(there.rows, there.partition, self.spec.order, counts, self.spec.rank)
        found = np.zeros(len(self), dtype=np.bool_)
        found[alive] = ranks > self.spec.last
        return found
