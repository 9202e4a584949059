"""Waiting: each row once, when it is final.

**Definition.** A row leaves when no row whose ``column`` is not greater can come any more: when it is behind the
watermark of the port + ``shift``. Rows that were taken back until then never leave; nor does one where it is NULL. So
rows that leave later are greater in ``column`` than all that have left before.

**State.** The rows that wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from dovetail.changelog.changes import Changes
from dovetail.joins.aggregates.aggregation import Closing
from dovetail.joins.dataflow.ports import Port
from dovetail.joins.dataflow.specification import OperatorSpec
from dovetail.joins.inputs.change_normalizer import ChangeNormalizer
from dovetail.joins.matching.pending_output import PendingOutput
from dovetail.joins.state.order import bound_of, times_of
from dovetail.joins.state.partitioned_by import PartitionedBy
from dovetail.joins.state.store import RunStore


@dataclass(frozen=True)
class WaitingSpec(OperatorSpec):
    """The rows of the port, once they are ``closing``."""

    port: Port
    closing: Closing

    @property
    def ports(self) -> tuple[Port, ...]:
        return (self.port,)

    @property
    def waits(self) -> bool:
        return True

    def open(self, store: RunStore, name: str) -> WaitingOperator:
        return WaitingOperator(self, store, name)


class WaitingOperator:
    """``on_batch([rows])`` gives nothing, ``on_watermark([watermark]) -> changes``."""

    def __init__(self, spec: WaitingSpec, store: RunStore, name: str) -> None:
        port = spec.port
        self._spec = spec
        self._normalizer = ChangeNormalizer.of(port, store, f"{name}.rows", (True,) * len(port.keys))
        self._waiting = PendingOutput(store, f"{name}.waiting", port.schema, PartitionedBy(port.keys))

    @property
    def dangling(self) -> int:
        return self._normalizer.dangling

    def on_batch(self, inputs: Sequence[pa.Table | None]) -> Changes:
        (rows,) = inputs
        schema = self._spec.port.schema
        changes = self._normalizer.normalize_and_store(rows)
        if len(changes):
            changes = Changes.with_deltas(changes.rows.select(schema.names), changes.deltas)
            self._waiting.hold(changes, times_of(changes.rows.column(self._spec.closing.column)))
        return Changes.empty(schema)

    def on_watermark(self, watermarks: Sequence[int | None]) -> Changes:
        (watermark,) = watermarks
        port, closing = self._spec.port, self._spec.closing
        if watermark is None:
            return Changes.empty(port.schema)
        return self._waiting.released(bound_of(watermark + closing.shift, port.schema.field(closing.column).type))
