"""An operator by itself, over a store that is made durable after each batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from dovetail.changelog.changes import DELTA, Changes
from dovetail.changelog.rows import where
from dovetail.changelog.schema import ARRIVAL
from dovetail.joins.dataflow.specification import OperatorSpec, WatermarkAware
from dovetail.joins.reference.rows import Record, Row
from dovetail.joins.state.durable_copy import DurableCopy
from dovetail.joins.state.order import EARLIEST, times_of
from dovetail.joins.state.store import SORT, Run
from tests.joins.harness import decoded, net


@dataclass
class Alone:
    """``spec`` at work on the records of its ports; arrivals are counted over all batches."""

    spec: OperatorSpec
    arrived: int = 0
    durable: DurableCopy = field(default_factory=DurableCopy)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Begin, or go on, from the durable copy."""
        self.store = self.durable.restored()
        self.operator = self.spec.open(self.store, "0")

    def on_batch(self, *records: Sequence[Record]) -> Counter[Row]:
        inputs = [
            self._received(part, port.schema, port.ordered) if part else None
            for part, port in zip(records, self.spec.ports, strict=True)
        ]
        return self._saved(self.operator.on_batch(inputs))

    def on_watermark(self, *watermarks: int | None) -> Counter[Row]:
        assert isinstance(self.operator, WatermarkAware)
        return self._saved(self.operator.on_watermark(watermarks))

    def held(self, name: str = "") -> int:
        """How many rows stand in the arrangement ``name``, or in all of them."""
        count = 0
        for one in [name] if name else self.store.runs:
            runs = [Changes(_unexpired(run).drop_columns([SORT])) for run in self.store.runs[one]]
            count += int(Changes.concat(runs).consolidated().deltas.sum()) if runs else 0
        return count

    def _received(self, records: Sequence[Record], schema: pa.Schema, ordered: bool) -> pa.Table:
        """As a host hands rows over: in the columns of the port, counts never NULL."""
        rows = decoded(schema, records, self.arrived)
        self.arrived += len(records)
        return rows if ordered else rows.drop_columns([ARRIVAL])

    def _saved(self, changes: Changes) -> Counter[Row]:
        self.durable.save(self.store)
        return net(changes.table)


def _unexpired(run: Run) -> pa.Table:
    """The time of our rows is their last column, before the arrival."""
    if run.since == EARLIEST:
        return run.table
    times = [name for name in run.table.column_names if name not in (SORT, DELTA, ARRIVAL)][-1]
    return where(run.table, times_of(run.table.column(times)) >= run.since)
