"""A step of a delta join: changes of several inputs, each with rows of another input, of which all are kept.

**Definition.** A delta join gives the rows of a chain of INNER joins, by whichever keys. Each input has a **path**: its
changes are joined with one other input after the other, and what is on its way is not kept. With the inputs in one
order, and A' for A after the batch:

    d(A x B x C)  =  dA x B x C  +  A' x dB x C  +  A' x B' x dC

so the path of an input looks into those before it as they are after the batch, and into those behind it as they were
before; what all paths give together is the change of the join, exactly, batch by batch.

    step 1      dA ── b.x ──┐    dB ── a.x ──┐    dC ── b.y ──┐
    step 2          c.y ──▶ rows     c.y ──▶ rows     a.x ──▶ rows

All paths take a step at once, and a step is an operator. The inputs that are looked into come to it beside the rows of
the paths; it keeps each once for each key that it is asked by, for however many paths ask.

**Method.** Rows that look into what was before the batch do so, then the batch is written, then the others look. Pairs
are made, and tested, in blocks of a bounded number.

**State.** The rows of the inputs that are looked into. A stage cannot see what another one has not committed, so what
is looked into in two steps is kept in both.

Source: the delta queries of Materialize; Blakeley, Larson and Tompa, "Efficiently Updating Materialized Views" (SIGMOD
1986): the differential of a join.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dovetail.changelog.changes import DELTA, Changes, products
from dovetail.changelog.errors import InternalError
from dovetail.changelog.rows import equal_rows
from dovetail.joins.dataflow.ports import Port
from dovetail.joins.dataflow.specification import OperatorSpec
from dovetail.joins.inputs.change_normalizer import ChangeNormalizer
from dovetail.joins.operators.delta_joins.on_path import PATH
from dovetail.joins.operators.multiway import ResidualCondition
from dovetail.joins.state.arrangement import Matches
from dovetail.joins.state.store import RunStore


@dataclass(frozen=True)
class KeptPart:
    """The rows of the part at ``place`` are kept, by the keys of its port; ``null_safe`` by key column."""

    place: int
    null_safe: tuple[bool, ...] = ()


@dataclass(frozen=True)
class EqualColumns:
    """``first`` and ``second``, which are no key, have to be equal; NULL equals NULL where ``null_safe``."""

    first: str
    second: str
    null_safe: bool = False


@dataclass(frozen=True)
class DeltaProbe:
    """The rows that the part ``probing`` gets, each with every row that is kept under its key.

    kept        the number of the one that is asked, among those that are kept
    after       it is asked after the rows of the batch are in it, else before
    path        the number of the path that goes on with the pairs
    equal       what is tested besides the key
    conditions  as well; their columns are together
    """

    probing: int
    kept: int
    after: bool
    path: int = 0
    equal: tuple[EqualColumns, ...] = ()
    conditions: tuple[ResidualCondition, ...] = ()


@dataclass(frozen=True)
class DeltaStepSpec(OperatorSpec):
    """A step of all paths. Output: the columns of ``schema``, NULL where a path does not have them yet.

    numbered  the rows have the number of their path in the column PATH, behind the others: another step follows
    """

    parts: tuple[Port, ...]
    kept: tuple[KeptPart, ...]
    probes: tuple[DeltaProbe, ...]
    schema: pa.Schema
    numbered: bool = False
    max_buffered_bytes: int | None = None

    def __post_init__(self) -> None:
        if len({one.place for one in self.kept}) < len(self.kept):
            raise InternalError("a step of a delta join would write the rows of one part twice")

    @property
    def ports(self) -> tuple[Port, ...]:
        return self.parts

    def open(self, store: RunStore, name: str) -> DeltaStepOperator:
        return DeltaStepOperator(self, store, name)


class DeltaStepOperator:
    """``on_batch([rows, rows, ..]) -> changes`` of the paths. Rows of a part that is not kept are changes."""

    def __init__(self, spec: DeltaStepSpec, store: RunStore, name: str) -> None:
        self._parts = spec.parts
        self._kept = [
            ChangeNormalizer.of(spec.parts[one.place], store, f"{name}.part{one.place}", one.null_safe)
            for one in spec.kept
        ]
        self._places = [one.place for one in spec.kept]
        self._probes = spec.probes
        columns = [field.with_nullable(True) for field in spec.schema]
        self._schema = pa.schema([*columns, pa.field(PATH, pa.int8())] if spec.numbered else columns)

    @property
    def dangling(self) -> int:
        return sum(normalizer.dangling for normalizer in self._kept)

    def on_batch(self, inputs: Sequence[pa.Table | None]) -> Changes:
        arrived = [
            None if rows is None or rows.num_rows == 0 else Changes(rows.select([*port.schema.names, DELTA]))
            for port, rows in zip(self._parts, inputs, strict=True)
        ]
        for place, normalizer in zip(self._places, self._kept, strict=True):
            arrived[place] = normalizer.normalize(inputs[place])
        output = [Changes.empty(self._schema), *self._paired(arrived, after=False)]
        for place, normalizer in zip(self._places, self._kept, strict=True):
            if (changes := arrived[place]) is not None:
                normalizer.store(changes)
        return Changes.concat([*output, *self._paired(arrived, after=True)])

    def _paired(self, arrived: Sequence[Changes | None], after: bool) -> Iterator[Changes]:
        for probe in self._probes:
            rows = arrived[probe.probing]
            if probe.after is after and rows is not None and len(rows):
                held = self._kept[probe.kept].arrangement
                for found in held.probed(rows.table, self._parts[probe.probing].keys):
                    yield self._pairs(probe, rows, found)

    def _pairs(self, probe: DeltaProbe, rows: Changes, found: Matches) -> Changes:
        """Each of ``rows`` with those that it has found, where the conditions hold."""
        probing = rows.table.take(pa.array(found.probe))
        deltas = products(Changes(probing).deltas, found.deltas)
        together = {name: probing.column(name) for name in probing.column_names if name != DELTA}
        together |= {name: found.rows.column(name) for name in found.rows.column_names if name != DELTA}
        absent = [field for field in self._schema if field.name not in together and field.name != PATH]
        together |= {field.name: pa.chunked_array([pa.nulls(len(deltas), field.type)]) for field in absent}
        if PATH in self._schema.names:
            together[PATH] = pa.chunked_array([pa.array(np.full(len(deltas), probe.path, dtype=np.int8))])
        columns = [together[name] for name in self._schema.names]
        table = pa.Table.from_arrays(columns, self._schema.names).cast(self._schema)
        return _passed(Changes.with_deltas(table, deltas), probe)


def _passed(pairs: Changes, probe: DeltaProbe) -> Changes:
    """Without those that fail a condition."""
    if len(pairs) and probe.equal:
        names = [(one.first, one.second) for one in probe.equal]
        table = pairs.table
        pairs = pairs.where(equal_rows(table, table, names, [one.null_safe for one in probe.equal]))
    for condition in probe.conditions:
        if len(pairs):
            pairs = pairs.where(condition.holds(pairs.table.select(list(condition.columns))))
    return pairs
