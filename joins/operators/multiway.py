"""The n-way join: several inputs that share a key, in one operator that keeps each of them once.

**Definition.** Rows of all inputs that agree in the key (NULL equals NULL only for null-safe keys) and fulfil the
residual conditions make a row of the output, in every combination. An input may be *optional*: where it holds nothing
under a key, a padded row stands for it. So the output is that of a chain of symmetric joins by this key, INNER for each
input, LEFT without a residual condition for each optional one; the first input is none.

**Method.** Under a key the combinations are the product of what the inputs hold, which is linear in each of them. With
A' for A after the batch:

    d(A x B x C)  =  dA x B x C  +  A' x dB x C  +  A' x B' x dC

An optional input counts as its rows, or as one padded row where there are none. Its change is that of its rows, and the
padded row that goes with the first one of a key, and comes with the end of the last:

    B     ───── b1 ─────── b2 ─────── -b1 ──────── -b2 ──▶
    dB      -pad +b1      +b2         -b1        -b2 +pad

All inputs are asked by one key, that of the rows that have come. So none is asked for what the others have given, and
none for a key that another one holds nothing under: the one that holds the fewest rows is asked first. An intermediate
result is neither kept nor looked up. Combinations are made, and tested, in blocks of a bounded number, so a key that is
hot in all inputs costs no more memory at once than what of it leaves.

An input that is several of the parts, a stream under several aliases, changes for one of them after the other: those
that have not changed yet see it as it stood before the batch.

    d(A x A)  =  dA x A  +  A' x dA

**State.** The rows of each input, once, for however many parts.

Source: Viglas, Naughton and Burger, "Maximizing the Output Rate of Multi-Way Join Queries over Streaming Information
Sources" (VLDB 2003): MJoin; the delta joins of Materialize.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dovetail.changelog.changes import Changes
from dovetail.changelog.errors import InternalError
from dovetail.changelog.rows import Mask, distinct, missing_side, numbered
from dovetail.joins.dataflow.ports import Pad, Port, Predicate
from dovetail.joins.dataflow.specification import OperatorSpec
from dovetail.joins.inputs.arrangement_view import ArrangementView
from dovetail.joins.inputs.change_normalizer import ChangeNormalizer
from dovetail.joins.inputs.renamed_rows import Names, RenamedRows, renamed
from dovetail.joins.matching.combinations import Combinations, RowsOfKeys
from dovetail.joins.state.arrangement import Arrangement, Matches
from dovetail.joins.state.store import RunStore


@dataclass(frozen=True)
class ResidualCondition:
    """A condition over some columns, at least one, of whichever inputs: it is tested as soon as these are together."""

    columns: tuple[str, ...]
    holds: Predicate


@dataclass(frozen=True)
class Repetition:
    """The part at ``place`` has the rows of an earlier one, ``of``, under the same key, and no input of its own.

    names   of each of its columns the one of that part that it is
    """

    place: int
    of: int
    names: Names


@dataclass(frozen=True)
class MultiwaySpec(OperatorSpec):
    """The n-way join of ``parts`` by the keys of their ports. Output: the columns of all, in their order.

    optional     the places of the parts for which a padded row may stand; not the first
    pad          what it holds
    repetitions  of parts that are no inputs of their own; none is of another
    """

    parts: tuple[Port, ...]
    optional: tuple[int, ...] = ()
    null_safe: tuple[bool, ...] = ()
    conditions: tuple[ResidualCondition, ...] = ()
    pad: Pad = Pad.NULL
    max_buffered_bytes: int | None = None
    repetitions: tuple[Repetition, ...] = ()

    def __post_init__(self) -> None:
        if 0 in self.optional:
            raise InternalError("the first input of an n-way join has to have a row: no padded one stands for it")

    @property
    def own(self) -> tuple[int, ...]:
        """The places of the parts that are inputs."""
        repeated = {one.place for one in self.repetitions}
        return tuple(place for place in range(len(self.parts)) if place not in repeated)

    @property
    def ports(self) -> tuple[Port, ...]:
        return tuple(self.parts[place] for place in self.own)

    def open(self, store: RunStore, name: str) -> MultiwayOperator:
        return MultiwayOperator(self, store, name)


class MultiwayOperator:
    """``on_batch([rows, rows, ..]) -> changes`` of the combined rows."""

    def __init__(self, spec: MultiwaySpec, store: RunStore, name: str) -> None:
        null_safe = spec.null_safe or (False,) * len(spec.parts[0].keys)
        repeated = {one.place: one for one in spec.repetitions}
        several = {one.of for one in spec.repetitions}
        inputs = {
            place: _Input(
                ChangeNormalizer.of(spec.parts[place], store, f"{name}.part{place}", null_safe), place in several
            )
            for place in spec.own
        }
        self._inputs = [*inputs.values()]
        self._parts = [
            _Part(
                inputs[repeated[place].of if place in repeated else place],
                repeated[place].names if place in repeated else (),
                place in spec.optional,
                spec.pad,
            )
            for place in range(len(spec.parts))
        ]
        self._schema = pa.schema([field.with_nullable(True) for port in spec.parts for field in port.schema])
        owner = {name: place for place, port in enumerate(spec.parts) for name in port.schema.names}
        self._conditions = [
            (
                frozenset(owner[name] for name in condition.columns),
                pa.schema([self._schema.field(name) for name in condition.columns]),
                condition.holds,
            )
            for condition in spec.conditions
        ]

    @property
    def dangling(self) -> int:
        return sum(one.normalizer.dangling for one in self._inputs)

    def refused(self) -> tuple[pa.Table | None, ...]:
        return tuple(one.normalizer.refused() for one in self._inputs)

    def on_batch(self, inputs: Sequence[pa.Table | None]) -> Changes:
        """The parts change one after the other: those before ``place`` have, those behind it have not yet."""
        for one, rows in zip(self._inputs, inputs, strict=True):
            one.take_in(rows)
        for part in self._parts:
            part.begin()
        output = [Changes.empty(self._schema)]
        for place, part in enumerate(self._parts):
            if len(part.source.arrived):
                output.extend(self._joined(place, *part.changed()))
        return Changes.concat(output)

    def _joined(self, place: int, keys: pa.Table, changes: Changes) -> Iterator[Changes]:
        """``changes`` of a part, row by row under ``keys``, with what the other parts hold."""
        numbers, firsts = numbered(keys)
        found, met = self._found(place, keys.take(pa.array(firsts)))
        alone = self._passed(Combinations.of(place, changes, numbers).where(met[numbers]), place)
        for combined in self._combined(alone, sorted(found.items())):
            yield combined.changes(self._schema)

    def _combined(self, begun: Combinations, others: Sequence[tuple[int, RowsOfKeys]]) -> Iterator[Combinations]:
        """``begun`` with what each of ``others`` holds, block by block: no more than one of each input is there."""
        if not others:
            yield begun
            return
        (other, held), *further = others
        for block in begun.with_each(other, held):
            yield from self._combined(self._passed(block, other), further)

    def _found(self, place: int, keys: pa.Table) -> tuple[dict[int, RowsOfKeys], Mask]:
        """What each other part holds under ``keys``, which differ, and which of them no other part lacks."""
        others = [other for other in range(len(self._parts)) if other != place]
        others.sort(key=lambda other: (self._parts[other].optional, self._parts[other].rows.size))
        found, met = {}, np.ones(keys.num_rows, dtype=np.bool_)
        for other in others:
            met_rows = np.flatnonzero(met)
            matches = self._parts[other].held(keys.take(pa.array(met_rows)))
            matches = Matches(met_rows[matches.probe], matches.rows)
            found[other] = RowsOfKeys.of(matches, keys.num_rows)
            met &= ~matches.unmatched(keys.num_rows)
        return found, met

    def _passed(self, combined: Combinations, last: int) -> Combinations:
        """Without those that fail a condition whose columns are together now that the input ``last`` is there."""
        for places, schema, holds in self._conditions:
            if last in places and places <= combined.tables.keys() and len(combined):
                combined = combined.where(holds(combined.rows(schema)))
        return combined


@dataclass
class _Input:
    """Rows that come in, for one part or ``several``."""

    normalizer: ChangeNormalizer
    several: bool
    arrived: Changes = field(init=False)
    before: Arrangement = field(init=False)
    """What is held; where several parts ask for it, as it was before the batch."""
    _remembered: bool = field(init=False)

    def take_in(self, rows: pa.Table | None) -> None:
        self.arrived = self.normalizer.normalize(rows)
        held = self.normalizer.arrangement
        self.before = held.snapshot() if self.several and len(self.arrived) else held
        self._remembered = False

    def store(self) -> Arrangement:
        """What is held after the batch."""
        if not self._remembered:
            self.normalizer.store(self.arrived)
            self._remembered = True
        return self.normalizer.arrangement


@dataclass
class _Part:
    """One of those that are joined: what its input holds, under ``names`` or as it is, or padded rows in its place."""

    source: _Input
    names: Names
    optional: bool
    pad: Pad
    rows: ArrangementView = field(init=False)

    def begin(self) -> None:
        """A batch has come: the part is as it was before it, until it has ``changed``."""
        self.rows = self._named(self.source.before)

    def changed(self) -> tuple[pa.Table, Changes]:
        """Remember what has arrived: what changes of the rows that stand for this part, and the key of each."""
        changes = renamed(self.source.arrived, self.names) if self.names else self.source.arrived
        keys = changes.table.select(self.rows.keys)
        if not self.optional:
            self.rows = self._named(self.source.store())
            return keys, changes
        touched = distinct(keys)
        before = self.rows.counts(touched)
        self.rows = self._named(self.source.store())
        after = self.rows.counts(touched)
        flipped = np.flatnonzero((before == 0) != (after == 0))
        pads = Changes.with_deltas(self._padding(len(flipped)), np.where(after[flipped] == 0, 1, -1))
        rows = Changes(pa.concat_tables([_nullable(changes.table), pads.table]).combine_chunks())
        return pa.concat_tables([keys, touched.take(pa.array(flipped))]).combine_chunks(), rows

    def held(self, keys: pa.Table) -> Matches:
        """The rows that stand for this part under each of ``keys``, which differ."""
        found = self.rows.probe(keys, keys.column_names)
        if not self.optional:
            return found
        counts = np.zeros(keys.num_rows, dtype=np.int64)
        np.add.at(counts, found.probe, found.deltas)
        found = found.where(counts[found.probe] > 0)
        empty = np.flatnonzero(counts == 0)
        pads = Changes.of(self._padding(len(empty)))
        rows = pa.concat_tables([_nullable(found.rows), pads.table]).combine_chunks()
        return Matches(np.concatenate([found.probe, empty]), rows)

    def _named(self, held: Arrangement) -> ArrangementView:
        return RenamedRows(held, self.names) if self.names else held

    def _padding(self, count: int) -> pa.Table:
        return missing_side(self.rows.schema, count, self.pad is Pad.DEFAULT)


def _nullable(rows: pa.Table) -> pa.Table:
    """``rows`` with columns that may be NULL, save their counts."""
    *fields, delta = rows.schema
    return rows.cast(pa.schema([*(field.with_nullable(True) for field in fields), delta]))
