"""Window functions: each row with values that are computed from the rows of its partition.

**Definition.** Rows that agree in the keys of the port form a partition; NULL is a key like any other, without keys all
rows are one. The output holds each row with the values that the function gives it among all rows of its partition. It
is the difference that a batch makes: where a value changes, -1 of the row with the old one and +1 with the new one.

**Method.** The partitions that a batch touches are computed anew, all by one call of the function; the others are not
read. What was computed is kept beside the rows, so what is taken back is what was out, to the last bit of a double.

**State.** All rows of each partition, with their values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from dovetail.changelog.changes import Changes
from dovetail.changelog.rows import Positions, side_by_side
from dovetail.joins.dataflow.ports import Port
from dovetail.joins.dataflow.specification import OperatorSpec
from dovetail.joins.inputs.change_normalizer import ChangeNormalizer
from dovetail.joins.partitions.ordering import in_order, partitions_of
from dovetail.joins.state.arrangement import Arrangement
from dovetail.joins.state.store import RunStore


class PartitionFunction(Protocol):
    """Values of each row, computed from all rows of its partition. Pickles.

    schema  the columns that it makes
    """

    @property
    def schema(self) -> pa.Schema: ...

    def __call__(self, rows: pa.Table, partition: Positions) -> pa.Table:
        """The values of ``rows``, in their order, the i-th being one of the partition ``partition[i]``."""
        ...


@dataclass(frozen=True)
class OverSpec(OperatorSpec):
    """The rows of the port with the values of ``function`` over partitions, by the keys of the port."""

    port: Port
    function: PartitionFunction

    @property
    def ports(self) -> tuple[Port, ...]:
        return (self.port,)

    def open(self, store: RunStore, name: str) -> OverOperator:
        return OverOperator(self, store, name)


class OverOperator:
    """``on_batch([rows]) -> changes`` of the rows with their values."""

    def __init__(self, spec: OverSpec, store: RunStore, name: str) -> None:
        port = spec.port
        safe = (True,) * len(port.keys)
        self._function = spec.function
        self._port = port
        self._normalizer = ChangeNormalizer.of(port, store, f"{name}.rows", safe)
        self._input = pa.schema([field.with_nullable(True) for field in port.schema])
        self._held = Arrangement(
            store, f"{name}.held", pa.schema([*self._input, *spec.function.schema]), port.keys, (), safe
        )

    @property
    def dangling(self) -> int:
        return self._normalizer.dangling

    def on_batch(self, inputs: Sequence[pa.Table | None]) -> Changes:
        (rows,) = inputs
        changes = self._normalizer.normalize_and_store(rows)
        if len(changes) == 0:
            return Changes.empty(self._held.schema)
        changes = Changes.with_deltas(changes.rows.select(self._input.names).cast(self._input), changes.deltas)
        _, partitions = partitions_of(changes.rows, self._port.keys)
        before = self._held.probe(partitions).summed().changes
        held = Changes.with_deltas(before.rows.select(self._input.names), before.deltas)
        after = self._computed(Changes.concat([held, changes]).consolidated())
        difference = Changes.concat([before.negated(), after]).consolidated()
        self._held.insert(difference)
        return difference

    def _computed(self, rows: Changes) -> Changes:
        """All rows of some partitions, each as often as it stands, with their values."""
        each = rows.rows.take(pa.array(np.repeat(np.arange(len(rows)), np.maximum(rows.deltas, 0))))
        partition, _ = partitions_of(each, self._port.keys)
        # Of rows that the order leaves equal the function may take either first: it finds them in one order always.
        order = in_order(each, partition, ())
        each = each.take(pa.array(order)).combine_chunks()
        values = self._function(each, partition[order]).cast(self._function.schema)
        return Changes.of(side_by_side(each, values).cast(self._held.schema))
