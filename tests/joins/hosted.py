"""An operator in the in-process host: a query of one scan or two into it, cut into buckets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from dovetail.changelog.schema import StreamSchema
from dovetail.joins.dataflow.graph import Dataflow, Edge, OperatorNode, Outlet, Sink, TopicScan
from dovetail.joins.dataflow.specification import OperatorSpec
from dovetail.joins.dataflow.state_memory import StateMemory
from dovetail.joins.host.in_memory import LocalQuery
from dovetail.joins.reference.rows import Record, Row
from tests.joins.harness import LEFT, RIGHT, decoded, net

_BUCKETS = 3
"""The few keys of the tests are in all of them."""


@dataclass
class Hosted:
    """``spec`` at work on the records of LEFT and RIGHT; arrivals are counted over all batches.

    memory   how much of its state may be in memory at once; None: all of it
    """

    spec: OperatorSpec
    memory: StateMemory | None = None
    arrived: int = 0

    def __post_init__(self) -> None:
        self.query = LocalQuery(dataflow_of(self.spec, self.memory), _BUCKETS)

    def on_batch(self, left: Sequence[Record], right: Sequence[Record]) -> Counter[Row]:
        return net(self.rows(left, right))

    def rows(self, left: Sequence[Record], right: Sequence[Record]) -> pa.Table | None:
        """What the batch sends to the sink, as it is written."""
        parts = zip(self.spec.ports, (left, right), strict=False)
        rows = {scan: decoded(port.schema, part, self.arrived) for scan, (port, part) in enumerate(parts)}
        self.arrived += max(len(left), len(right))
        return self.query.feed(rows)

    def restart(self) -> None:
        self.query.restart()

    def rescale(self, buckets: int) -> None:
        self.query.rescale(buckets)


def dataflow_of(operator: OperatorSpec, memory: StateMemory | None = None) -> Dataflow:
    """A scan into each port of ``operator``, its output to a sink that is not exchanged."""
    scans = tuple(
        TopicScan(StreamSchema(name, ()), name, (), (), edge, port.watermark)
        for edge, (name, port) in enumerate(zip("lr", operator.ports, strict=False))
    )
    inputs = tuple(range(len(scans)))
    return Dataflow(
        scans=scans,
        nodes=(OperatorNode(1, operator, inputs, (Outlet(2),), memory=memory),),
        edges=(
            *(Edge(edge, 1, operator.ports[edge].keys, operator.ports[edge].everywhere) for edge in inputs),
            Edge(2, 2, ()),
        ),
        sink=Sink(2, (*LEFT.names, *RIGHT.names), (), (), True, False),
    )
