"""The operators of one level for one bucket: what a host calls once a batch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from changelog.changes import DELTA, Changes
from changelog.schema import ARRIVAL
from joins.dataflow import Dataflow, Node, Port, Transform, transformed
from joins.exchange import cut
from joins.limit import check_buffered
from joins.operators import ports, started
from joins.store import RunStore

HERE = -1
"""The bucket of a departure that is written where it was made: nobody else has rows of its key."""


@dataclass(frozen=True)
class Arrival:
    edge: int
    rows: pa.Table


@dataclass(frozen=True)
class Mark:
    """The greatest event time that an input partition has shown, in ms since the epoch."""

    edge: int
    partition: int
    event_ms: int


@dataclass(frozen=True)
class Departure:
    edge: int
    bucket: int
    rows: pa.Table


@dataclass
class LevelOutput:
    departures: list[Departure] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    """``late`` rows dropped and ``unfounded`` retractions left out in this batch."""


class LevelTask:
    """The nodes of ``level`` over the state of one bucket.

    snapshots   the static tables of the dataflow, by name
    """

    def __init__(
        self, dataflow: Dataflow, level: int, buckets: int, store: RunStore, snapshots: Mapping[str, pa.Table]
    ) -> None:
        self._dataflow = dataflow
        self._buckets = buckets
        self._store = store
        self._nodes = [
            (
                node,
                started(node.operator, store, str(index)),
                tuple(step.bound(snapshots) for step in node.transforms),
            )
            for index, node in enumerate(dataflow.nodes)
            if node.level == level
        ]

    def on_batch(self, arrivals: Sequence[Arrival], marks: Sequence[Mark] = ()) -> LevelOutput:
        """Rows in, rows out. The marks move the watermarks after the rows were judged by them."""
        waiting: dict[int, list[pa.Table]] = defaultdict(list)
        for arrival in arrivals:
            waiting[arrival.edge].append(arrival.rows)
        output = LevelOutput()
        late = 0
        unfounded = -sum(operator.unfounded for _, operator, _ in self._nodes)
        for node, operator, transforms in self._nodes:
            inputs = []
            for edge, port in zip(node.inputs, ports(node.operator), strict=True):
                rows, dropped = self._on_time(_received(waiting.pop(edge, []), port), port, edge)
                inputs.append(rows)
                late += dropped
            changes = operator.on_batch(inputs)
            check_buffered(node.operator, self._store, self._buckets)
            self._leave(node, changes, transforms, output)
        self._advance(marks)
        unfounded += sum(operator.unfounded for _, operator, _ in self._nodes)
        output.counters = {"late": late, "unfounded": unfounded}
        return output

    def _leave(self, node: Node, changes: Changes, transforms: Sequence[Transform], output: LevelOutput) -> None:
        rows = transformed(changes.table, transforms)
        if not Changes(rows).only_insertions:
            rows = Changes(rows).consolidated().table
        if rows.num_rows == 0:
            return
        sink = self._dataflow.sink
        if node.output == sink.edge and not sink.exchanged:
            output.departures.append(Departure(node.output, HERE, rows))
            return
        keys = self._dataflow.edge(node.output).keys
        output.departures.extend(
            Departure(node.output, bucket, part) for bucket, part in cut(rows, keys, self._buckets)
        )

    # -- watermarks: per edge, the least over its partitions of the greatest event time, less the delay

    def _on_time(self, rows: pa.Table | None, port: Port, edge: int) -> tuple[pa.Table | None, int]:
        if rows is None or port.watermark is None:
            return rows, 0
        reached = [value for name, value in self._store.scalars.items() if name.startswith(f"mark.{edge}.")]
        if not reached:
            return rows, 0
        watermark_ms = min(reached) - port.watermark.delay_ms
        times = rows.column(port.watermark.column)
        behind = pc.fill_null(pc.less(times, pa.scalar(watermark_ms, pa.timestamp("ms")).cast(times.type)), False)
        late = behind.to_numpy() & (rows.column(DELTA).to_numpy() > 0)
        return rows.filter(pa.array(~late)), int(np.count_nonzero(late))

    def _advance(self, marks: Sequence[Mark]) -> None:
        for mark in marks:
            name = f"mark.{mark.edge}.{mark.partition}"
            self._store.scalars[name] = max(self._store.scalars.get(name, mark.event_ms), mark.event_ms)


def _received(parts: list[pa.Table], port: Port) -> pa.Table | None:
    """The rows of one port, in its columns and types."""
    if not parts:
        return None
    fields = [*port.schema]
    if port.ordered:
        fields.append(pa.field(ARRIVAL, pa.int64()))
    schema = pa.schema([*fields, pa.field(DELTA, pa.int32(), nullable=False)])
    return pa.concat_tables([part.select(schema.names).cast(schema) for part in parts]).combine_chunks()
