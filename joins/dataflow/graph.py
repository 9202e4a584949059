"""A query as the hosts run it: scans, operators in levels, exchanges between them, a sink.

    scan ──edge──▶ node (level 1) ──edge──▶ node (level 2) ──edge──▶ sink
                        └─────────edge──▶ node (level 2) ──edge──▶ ..

What a node makes may have several readers: each has an edge of its own.

Rows travel on edges as Arrow tables: the columns of the edge, ``arrival`` where the receiving port needs the order of
records, and ``delta`` last. An edge names the columns by whose hash its rows are cut into buckets; a bucket of a level
holds the state of that level's operators for its keys, and nothing else is shared between buckets. Everything here
pickles, and nothing here knows the host.
"""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.changelog.schema import JSON, RecordFormat, StreamSchema
from dovetail.joins.dataflow.ports import Port, Transform, Watermark
from dovetail.joins.dataflow.specification import OperatorSpec
from dovetail.joins.dataflow.state_memory import StateMemory


@dataclass(frozen=True)
class Edge:
    """Where rows go: ``keys`` cut them into buckets; ``level`` is that of the receiving node, or the sink's.

    broadcast   they all go to every bucket: each holds what few rows there are
    """

    id: int
    level: int
    keys: tuple[str, ...]
    broadcast: bool = False


@dataclass(frozen=True)
class TopicScan:
    """One reading of a topic (a self join has two), decoded, transformed, and sent along ``edge``.

    columns     the declared and reserved columns to decode (``_tp_time``, ``_tp_sn`` among them where used)
    transforms  applied in order to the decoded rows
    watermark   over a decoded column, before the transforms: rows that a WHERE drops move it too
    """

    stream: StreamSchema
    topic: str
    columns: tuple[str, ...]
    transforms: tuple[Transform, ...]
    edge: int
    watermark: Watermark | None = None
    starts_latest: bool = False
    """History is not read: a fresh start begins at the end of the topic (else at its beginning)."""
    start_offsets: str = ""
    """What ``seek_to`` says, if anything: 'earliest', 'latest', a time in ms (below 0: before now), or offsets per
    partition '5,3,11'."""
    alias: str = ""
    """What the query calls it."""

    @property
    def headed(self) -> bool:
        """Whether it reads headers of records."""
        return self.stream.headed(self.columns)

    @property
    def name(self) -> str:
        """What late rows are told apart by."""
        return self.alias or self.topic


@dataclass(frozen=True)
class Outlet:
    """A way out of an operator: its changes pass ``transforms`` on to ``edge``."""

    edge: int
    transforms: tuple[Transform, ...] = ()


@dataclass(frozen=True)
class OperatorNode:
    """An operator at a level; its inputs are edges in port order, its changes leave by every one of its ``outlets``.

    clock   by port: how much less than its watermark the time of a row may be that is yet to leave (0 or below); so the
            output has the least of these for its watermark. Empty: nothing is known of it
    memory  how much of its state may be in memory at once; None: all of it
    """

    level: int
    operator: OperatorSpec
    inputs: tuple[int, ...]
    outlets: tuple[Outlet, ...]
    clock: tuple[int, ...] = ()
    memory: StateMemory | None = None

    @property
    def outputs(self) -> tuple[int, ...]:
        """The edges that it feeds."""
        return tuple(outlet.edge for outlet in self.outlets)


@dataclass(frozen=True)
class Sink:
    """The output of a query.

    columns    what a record's value holds, in order
    key        the columns of the rows that make up the Kafka key; may be hidden (not among ``columns``)
    updating   whether retractions can occur (``_tp_delta`` is written then)
    exchanged  rows meet by ``key`` before they are written, so that a retraction comes before its replacement even if
               two buckets made them; false where the last node is already cut by (a part of) the key
    format     'changelog' or 'upsert'
    value_format, key_format  how the bytes of values and keys hold the columns
    clock      by port of the last operator, as ``OperatorNode.clock``: heartbeats tell readers the watermark that the
               output has by it. Empty: none is told
    grid       times of rows are at multiples of the first number, and the second one more
    """

    edge: int
    columns: tuple[str, ...]
    key: tuple[str, ...]
    key_names: tuple[str, ...]
    updating: bool
    exchanged: bool
    format: str = "changelog"
    clock: tuple[int, ...] = ()
    grid: tuple[int, int] = (1, 0)
    value_format: RecordFormat = JSON
    key_format: RecordFormat = JSON


@dataclass(frozen=True)
class Dataflow:
    """A whole query; ``snapshots`` names the static tables that its transforms need, read once at its first start.

    period_ms   so long after one batch another begins at the soonest (EMIT PERIODIC); 0: when there is something new
    """

    scans: tuple[TopicScan, ...]
    nodes: tuple[OperatorNode, ...]
    edges: tuple[Edge, ...]
    sink: Sink
    snapshots: tuple[str, ...] = ()
    period_ms: int = 0

    @property
    def topics(self) -> list[str]:
        """Those that it reads, in order."""
        return sorted({scan.topic for scan in self.scans})

    @property
    def headed(self) -> frozenset[str]:
        """Those of them whose headers it reads."""
        return frozenset(scan.topic for scan in self.scans if scan.headed)

    @property
    def levels(self) -> int:
        """The number of levels with state; 0 for a query without."""
        return max((node.level for node in self.nodes), default=0)

    @property
    def opening_levels(self) -> frozenset[int]:
        """The levels whose first bucket has something to say before the first row."""
        return frozenset(node.level for node in self.nodes if node.operator.has_initial_output)

    @property
    def answers_once(self) -> bool:
        """Whether rows are answered once, so that the history of the other side must be there before them."""
        return any(node.operator.answers_once for node in self.nodes)

    @property
    def waits(self) -> bool:
        """Whether the output may lack rows that wait for a watermark."""
        return any(node.operator.waits for node in self.nodes)

    def memory(self, level: int) -> StateMemory | None:
        """How much of the state of a level may be in memory at once; None: all of it."""
        return next((node.memory for node in self.nodes if node.level == level and node.memory is not None), None)

    def edge(self, edge_id: int) -> Edge:
        return next(edge for edge in self.edges if edge.id == edge_id)

    @property
    def ports(self) -> dict[int, Port]:
        """Edge → the port of an operator that it leads to."""
        return {edge: port for node in self.nodes for edge, port in zip(node.inputs, node.operator.ports, strict=True)}

    def source(self, edge_id: int) -> TopicScan:
        """The scan whose watermark an edge has."""
        return next(scan for scan in self.scans if edge_id in self.beyond(scan.edge))

    def scans_behind(self, edge_id: int) -> frozenset[int]:
        """The numbers of the scans whose rows an edge carries, or rows that are made of theirs."""
        own = {number for number, scan in enumerate(self.scans) if scan.edge == edge_id}
        inputs = [edge for node in self.nodes if edge_id in node.outputs for edge in node.inputs]
        return frozenset(own.union(*(self.scans_behind(edge) for edge in inputs)))

    def beyond(self, *edge_ids: int) -> tuple[int, ...]:
        """Edges, and those beyond operators of one input: they have the same watermark."""
        edges = list(edge_ids)
        for node in self.nodes:
            if len(node.operator.ports) == 1 and node.inputs[0] in edges:
                edges.extend(node.outputs)
        return tuple(edge for edge in edges if edge != self.sink.edge)

    def listening(self, edge_id: int) -> frozenset[int]:
        """The levels that need the partition times of an edge: its own, and those of what is made of it."""
        levels = {self.edge(edge_id).level}
        for node in self.clocks:
            if edge_id in node.inputs:
                levels |= self.levels_beyond(node)
        return frozenset(levels)

    def levels_beyond(self, node: OperatorNode) -> frozenset[int]:
        """The levels that need the watermark that a node makes."""
        return frozenset(level for edge in self.beyond(*node.outputs) for level in self.listening(edge))

    @property
    def clocks(self) -> tuple[OperatorNode, ...]:
        """The nodes that make a watermark of those of their inputs, upstream first."""
        return tuple(sorted((node for node in self.nodes if node.clock), key=lambda node: node.level))
