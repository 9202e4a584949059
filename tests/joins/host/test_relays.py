"""The watermark of what leaves a join, told at the levels that need it."""

from __future__ import annotations

import pyarrow as pa

from dovetail.changelog.schema import StreamSchema
from dovetail.joins.aggregates.aggregate import AggregateSpec
from dovetail.joins.aggregates.aggregation import Aggregation, Closing, Fold
from dovetail.joins.dataflow.graph import Dataflow, Edge, OperatorNode, Outlet, Sink, TopicScan
from dovetail.joins.dataflow.ports import Ingest, JoinKind, Port, Watermark
from dovetail.joins.inputs.watermarks import PartitionTime, Relay, Watermarks, relayed
from dovetail.joins.operators.range import Band, RangeSpec

ROWS = pa.schema([("k", pa.int64()), ("t", pa.int64())])
LEFT, RIGHT, JOINED, GROUPED, LAST = range(5)


def port(delay_ms: int = 0) -> Port:
    return Port(ROWS, ("k",), Ingest.APPEND, watermark=Watermark("t", delay_ms))


def relay(scalars: dict[str, int] | None = None) -> Relay:
    """Of a join ``t - 10 <= u <= t``, by ``t``."""
    watermarks = Watermarks((LEFT, RIGHT), (port(), port(5)), {} if scalars is None else scalars)
    return Relay((0, -10), (JOINED, GROUPED), watermarks)


def test_it_stands_where_the_least_of_the_inputs_lets_it() -> None:
    one = relay()
    assert one.times([PartitionTime(LEFT, 0, 100)]) == []
    assert one.times([PartitionTime(RIGHT, 0, 95)]) == [
        PartitionTime(JOINED, 0, 80),
        PartitionTime(GROUPED, 0, 80),
    ]
    assert one.times([PartitionTime(RIGHT, 0, 500)]) == [
        PartitionTime(JOINED, 0, 100),
        PartitionTime(GROUPED, 0, 100),
    ]


def test_it_is_kept_over_restarts() -> None:
    scalars: dict[str, int] = {}
    relay(scalars).times([PartitionTime(LEFT, 0, 100), PartitionTime(RIGHT, 0, 95)])
    assert relay(scalars).times([]) == [PartitionTime(JOINED, 0, 80), PartitionTime(GROUPED, 0, 80)]


def test_one_relay_feeds_the_next() -> None:
    second = Relay((-1,), (LAST,), Watermarks((JOINED,), (port(),), {}))
    partition_times = [PartitionTime(LEFT, 0, 100), PartitionTime(RIGHT, 0, 200)]
    assert relayed([relay(), second], partition_times)[-1] == PartitionTime(LAST, 0, 99)


def test_marks_are_told_to_the_levels_beyond_a_clock() -> None:
    """scans ─▶ join (1) ─▶ groups (2) ─▶ groups (3) ─▶ sink"""
    join = RangeSpec(JoinKind.INNER, port(), port(), Band("t", "t", 0, 10))
    count = Aggregation("n", Fold.COUNT, "", pa.int64())
    groups = AggregateSpec(port(), (count,), insertions=True, closing=Closing("t", 0), closed=True)
    levels = {LEFT: 1, RIGHT: 1, JOINED: 2, GROUPED: 3, LAST: 4}
    flow = Dataflow(
        scans=tuple(TopicScan(StreamSchema("s", ()), "s", (), (), edge) for edge in (LEFT, RIGHT)),
        nodes=(
            OperatorNode(1, join, (LEFT, RIGHT), (Outlet(JOINED),), clock=(0, -10)),
            OperatorNode(2, groups, (JOINED,), (Outlet(GROUPED),)),
            OperatorNode(3, groups, (GROUPED,), (Outlet(LAST),)),
        ),
        edges=tuple(Edge(edge, level, ("k",)) for edge, level in levels.items()),
        sink=Sink(LAST, ("k",), ("k",), ("k",), False, False),
    )
    assert flow.listening(LEFT) == {1, 2, 3}
    assert flow.listening(GROUPED) == {3}
    assert flow.beyond(JOINED) == (JOINED, GROUPED)
    assert [node.outputs for node in flow.clocks] == [(JOINED,)]
    assert flow.levels_beyond(flow.nodes[0]) == {2, 3}
