"""The operators of one level for one bucket: what a host calls once a batch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from dovetail.changelog.changes import DELTA, DELTA_TYPE, Changes
from dovetail.changelog.schema import ARRIVAL, RECORD, WRITTEN
from dovetail.joins.dataflow.graph import Dataflow, OperatorNode, Outlet
from dovetail.joins.dataflow.ports import Port, transformed
from dovetail.joins.dataflow.specification import HasInitialOutput, RejectsRows, RunningOperator, WatermarkAware
from dovetail.joins.host.activity import Activity, NodeWork
from dovetail.joins.host.exchange import KEYLESS, dealt
from dovetail.joins.host.state_limit import check_buffered
from dovetail.joins.inputs.arrival import in_order
from dovetail.joins.inputs.watermarks import PartitionTime, Relay, Watermarks, next_on, output_watermark, relayed
from dovetail.joins.state.arrangement_stats import holdings
from dovetail.joins.state.store import RunStore

Clock = Callable[[], int]
"""Gives nanoseconds since any moment; they never go back."""
HERE = -1
"""The bucket of a departure that is written where it was made: nobody else has rows of its key."""


@dataclass(frozen=True)
class Arrival:
    edge: int
    rows: pa.Table


@dataclass(frozen=True)
class Departure:
    edge: int
    bucket: int
    rows: pa.Table


@dataclass(frozen=True)
class Late:
    """Insertions of an edge that came behind its watermark, as it stood before them: the columns of the port."""

    edge: int
    watermark: int
    rows: pa.Table


@dataclass(frozen=True)
class Refused:
    """Records of an edge that a budget of rows has refused: the columns of the port, the record where the host sent it
    along, and the reason.
    """

    edge: int
    rows: pa.Table


@dataclass
class LevelOutput:
    departures: list[Departure] = field(default_factory=list)
    late: list[Late] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    """``late`` rows, of each edge too (``late_of``), ``dangling`` retractions, and ``rejected`` records, if a budget
    has refused some: those left out in this batch."""
    watermarks: dict[int, int] = field(default_factory=dict)
    """Where the watermark of each edge stands now; those that stand nowhere yet are not there."""
    held_by: dict[int, int] = field(default_factory=dict)
    """The partition that holds the watermark of each edge back."""
    activity: Activity = field(default_factory=Activity)
    """What each node did in this batch, and holds after it."""
    output_watermark: int | None = None
    """Where the watermark of the query's output stands now, if it has advanced in this batch; in all buckets alike."""


def late_of(edge: int) -> str:
    """The counter of the late rows of an edge."""
    return f"late.{edge}"


@dataclass(frozen=True)
class _Running:
    """A node at work; ``number`` is its own in the dataflow, ``outlets`` have the static tables that they need."""

    number: int
    node: OperatorNode
    operator: RunningOperator
    outlets: tuple[Outlet, ...]
    watermarks: Watermarks


class LevelTask:
    """The nodes of ``level`` over the state of ``bucket``.

    snapshots   the static tables of the dataflow, by name
    clock       measures how long each node is at work; left out: it stands still
    """

    def __init__(
        self,
        dataflow: Dataflow,
        level: int,
        bucket: int,
        buckets: int,
        store: RunStore,
        snapshots: Mapping[str, pa.Table],
        clock: Clock = lambda: 0,
    ) -> None:
        self._clock = clock
        self._dataflow = dataflow
        self._bucket = bucket
        self._buckets = buckets
        self._store = store
        self._nodes = [
            _Running(
                index,
                node,
                node.operator.open(store, str(index)),
                tuple(_bound(outlet, snapshots) for outlet in node.outlets),
                Watermarks(node.inputs, node.operator.ports, store.scalars),
            )
            for index, node in enumerate(dataflow.nodes)
            if node.level == level
        ]
        self._relays = [
            Relay.of(node, node.operator.ports, dataflow.beyond(*node.outputs), store.scalars)
            for node in dataflow.clocks
            if node.level < level and level in dataflow.levels_beyond(node)
        ]

    def on_batch(self, arrivals: Sequence[Arrival], partition_times: Sequence[PartitionTime] = ()) -> LevelOutput:
        """Rows in, rows out. Partition times move the watermarks after the rows were judged by them; what that lets
        go leaves with the rows of the batch.
        """
        received: dict[int, list[pa.Table]] = defaultdict(list)
        for arrival in arrivals:
            received[arrival.edge].append(arrival.rows)
        partition_times = relayed(self._relays, partition_times)
        output = LevelOutput()
        dangling = -sum(running.operator.dangling for running in self._nodes)
        for running in self._nodes:
            output.activity.nodes[running.number] = self._work(running, received, partition_times, output)
        dangling += sum(running.operator.dangling for running in self._nodes)
        output.counters = {"late": 0, "dangling": dangling}
        if output.refused:
            output.counters["rejected"] = sum(refused.rows.num_rows for refused in output.refused)
        for late in output.late:
            for name in ("late", late_of(late.edge)):
                output.counters[name] = output.counters.get(name, 0) + late.rows.num_rows
        output.watermarks = {
            edge: value
            for running in self._nodes
            for edge, value in zip(running.node.inputs, running.watermarks.values, strict=True)
            if value is not None
        }
        output.held_by = {
            edge: partition
            for running in self._nodes
            for edge, partition in zip(running.node.inputs, running.watermarks.held_by, strict=True)
            if partition is not None
        }
        held = holdings(self._store)
        output.activity.held = {name: {self._bucket: holding} for name, holding in held.items()}
        return output

    def _output_watermark(self, running: _Running) -> int | None:
        """The watermark of the query's output, where the node is the one whose rows that are."""
        sink = self._dataflow.sink
        if sink.edge not in running.node.outputs or not sink.clock:
            return None
        reached = output_watermark(sink.clock, running.watermarks.values)
        return None if reached is None else next_on(sink.grid, reached)

    def _work(
        self,
        running: _Running,
        received: Mapping[int, list[pa.Table]],
        partition_times: Sequence[PartitionTime],
        output: LevelOutput,
    ) -> NodeWork:
        """Let a node have its part of the batch; what it did."""
        begun_ns = self._clock()
        opened = self._opened(running)
        inputs = _on_time(running, received, output.late)
        before = self._output_watermark(running)
        changes = running.operator.on_batch(inputs)
        output.refused += _refused(running)
        if opened is not None:
            changes = Changes.concat([opened, changes])
        running.watermarks.advance(partition_times)
        changes = _in_time(running, changes)
        if (reached := self._output_watermark(running)) != before:
            output.output_watermark = reached
        check_buffered(running.node.operator, self._store, self._buckets)
        left = sum(self._leave(changes, outlet, output) for outlet in running.outlets)
        rows_in = tuple(0 if rows is None else rows.num_rows for rows in inputs)
        return NodeWork(rows_in, len(changes), left, self._clock() - begun_ns)

    def _opened(self, running: _Running) -> Changes | None:
        """What the node says before its first row. All buckets have the node, the rows without keys go to one."""
        operator = running.operator
        if (
            self._bucket != KEYLESS
            or not isinstance(operator, HasInitialOutput)
            or not running.node.operator.has_initial_output
        ):
            return None
        return operator.initial_output()

    def _leave(self, changes: Changes, outlet: Outlet, output: LevelOutput) -> int:
        """How many rows left by it."""
        rows = transformed(changes.table, outlet.transforms)
        if not Changes(rows).only_insertions:
            rows = Changes(rows).consolidated().table
        count = int(rows.num_rows)
        if count == 0:
            return 0
        sink = self._dataflow.sink
        if outlet.edge == sink.edge and not sink.exchanged:
            output.departures.append(Departure(outlet.edge, HERE, rows))
            return count
        edge = self._dataflow.edge(outlet.edge)
        output.departures.extend(
            Departure(outlet.edge, bucket, part) for bucket, part in dealt(rows, edge, self._buckets)
        )
        return count


def _bound(outlet: Outlet, snapshots: Mapping[str, pa.Table]) -> Outlet:
    return replace(outlet, transforms=tuple(step.bound(snapshots) for step in outlet.transforms))


def _on_time(running: _Running, received: Mapping[int, list[pa.Table]], late: list[Late]) -> list[pa.Table | None]:
    """The rows by port, None where there are none; those that are late go to ``late``."""
    inputs: list[pa.Table | None] = []
    for index, (edge, port) in enumerate(zip(running.node.inputs, running.node.operator.ports, strict=True)):
        rows, watermark = _received(received.get(edge, []), port), running.watermarks.values[index]
        if rows is not None and watermark is not None:
            behind = running.watermarks.late(index, rows)
            if behind.any():
                late.append(Late(edge, watermark, rows.filter(pa.array(behind)).select(port.schema.names)))
                rows = rows.filter(pa.array(~behind))
        inputs.append(rows if rows is not None and rows.num_rows else None)
    return inputs


def _refused(running: _Running) -> list[Refused]:
    if not isinstance(running.operator, RejectsRows):
        return []
    by_port = zip(running.node.inputs, running.operator.refused(), strict=True)
    return [Refused(edge, rows) for edge, rows in by_port if rows is not None]


def _in_time(running: _Running, changes: Changes) -> Changes:
    """``changes``, and those that the watermarks bring."""
    values = running.watermarks.values
    if not isinstance(running.operator, WatermarkAware) or all(value is None for value in values):
        return changes
    passed = running.operator.on_watermark(values)
    return Changes.concat([changes, passed]) if len(passed) else changes


def _received(parts: list[pa.Table], port: Port) -> pa.Table | None:
    """The rows of one port in the order of their arrival, in its columns and types."""
    if not parts:
        return None
    fields = [*port.schema]
    if port.ordered or (port.tie_break_by_arrival and all(ARRIVAL in part.column_names for part in parts)):
        fields.append(pa.field(ARRIVAL, pa.int64()))
        if all(WRITTEN in part.column_names for part in parts):
            fields.append(pa.field(WRITTEN, pa.int64()))
        if port.max_rows_per_key is not None and all(RECORD in part.column_names for part in parts):
            fields.append(parts[0].schema.field(RECORD))
    schema = pa.schema([*fields, pa.field(DELTA, DELTA_TYPE, nullable=False)])
    return in_order(pa.concat_tables([part.select(schema.names).cast(schema) for part in parts]).combine_chunks())
