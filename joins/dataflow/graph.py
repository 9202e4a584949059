"""A query as the hosts run it: scans, operators in levels, exchanges between them, a sink.

    scan ──edge──▶ node (level 1) ──edge──▶ node (level 2) ──edge──▶ sink

Rows travel on edges as Arrow tables: the columns of the edge, ``arrival`` where the receiving port needs the order of
records, and ``delta`` last. An edge names the columns by whose hash its rows are cut into buckets; a bucket of a level
holds the state of that level's operators for its keys, and nothing else is shared between buckets. Everything here
pickles, and nothing here knows the host.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import pyarrow as pa

from changelog.schema import StreamSchema
from joins.dataflow.ports import JoinKind, Pad, Port, Predicate, Transform, Watermark


@dataclass(frozen=True)
class KeyedSpec:
    """Upserts in, changes out: -1 of the old row and +1 of the new one, by primary key."""

    port: Port


@dataclass(frozen=True)
class BidirectionalSpec:
    """The symmetric join: both sides are kept and both trigger. Output: columns of left, then right."""

    kind: JoinKind
    left: Port
    right: Port
    null_safe: tuple[bool, ...] = ()
    """Per key column: NULL equals NULL (IS NOT DISTINCT FROM). Empty: none does."""
    condition: Predicate | None = None
    """The residual condition, over the columns of left and right together."""
    pad: Pad = Pad.NULL
    max_buffered_bytes: int | None = None


@dataclass(frozen=True)
class Band:
    """``lower <= left - right <= upper`` over a time column of each side; both inclusive, None: no bound.

    The bounds are in the unit of the columns, which have one type: a timestamp or an integer.

    left_shift    rows of the left port that are yet to come have ``left >= watermark + left_shift`` (ms, or the number
                  itself); None: their column does not follow the event time
    """

    left: str
    right: str
    lower: int | None
    upper: int | None
    left_shift: int | None = 0
    right_shift: int | None = 0


@dataclass(frozen=True)
class RangeSpec:
    """The symmetric join of rows near in time: as ``BidirectionalSpec`` with a band; its state goes with the watermark.

    A left row goes when ``left - lower`` is behind the right watermark: nothing yet to come can match it. So a right
    row when ``right + upper`` is behind the left one. One that may be taken back goes besides not before the watermark
    of its own port, if it has one, has passed it. What goes this way is no retraction: the output stays.

    append   padded rows leave once, when their row goes; else at once, and are taken back by the first match. For
             inputs without retractions only
    closed   every row leaves once, when the later of its times is behind the least watermark of the inputs (EMIT ON
             WINDOW CLOSE); what was taken back until then never leaves
    """

    kind: JoinKind
    left: Port
    right: Port
    band: Band
    null_safe: tuple[bool, ...] = ()
    condition: Predicate | None = None
    pad: Pad = Pad.NULL
    max_buffered_bytes: int | None = None
    append: bool = False
    closed: bool = False


@dataclass(frozen=True)
class Alignment:
    """A left row of a one-shot join waits until the right watermark has passed its ``left_time`` by ``lag_ms``."""

    left_time: str
    lag_ms: int


@dataclass(frozen=True)
class EnrichmentSpec:
    """One-shot: each left row is joined once, when it comes, with the right rows held then. INNER, LEFT, SEMI or ANTI.

    The left port is APPEND or CHANGES without retractions; only the right side is kept. Right rows of a batch are
    taken in before its left rows are answered.
    """

    kind: JoinKind
    left: Port
    right: Port
    null_safe: tuple[bool, ...] = ()
    condition: Predicate | None = None
    pad: Pad = Pad.NULL
    max_buffered_bytes: int | None = None
    alignment: Alignment | None = None


@dataclass(frozen=True)
class AsofOnceSpec:
    """One-shot ASOF: as Enrichment, but at most one right row for each left row: the nearest for which
    ``left_time <comparison> right_time`` holds; ties: last arrived. Keeps ``keep_versions`` rows per join key."""

    kind: JoinKind
    left: Port
    right: Port
    left_time: str
    right_time: str
    comparison: str
    """``>=``, ``>``, ``<=`` or ``<``."""
    keep_versions: int = 3
    condition: Predicate | None = None
    pad: Pad = Pad.NULL
    max_buffered_bytes: int | None = None
    alignment: Alignment | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "right", replace(self.right, ties_by_arrival=True))


@dataclass(frozen=True)
class LatestSpec:
    """One-shot: each left row meets the right row of its key that was inserted last. INNER, LEFT or FULL.

    FULL answers the rows of either side with the last row of the other: of a batch first the right rows, with the left
    rows of the batches before, then the left ones.
    """

    kind: JoinKind
    left: Port
    right: Port
    pad: Pad = Pad.NULL
    max_buffered_bytes: int | None = None
    alignment: Alignment | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "right", replace(self.right, ties_by_arrival=True))
        if self.kind is JoinKind.FULL:
            object.__setattr__(self, "left", replace(self.left, ties_by_arrival=True))


@dataclass(frozen=True)
class AsofSpec:
    """The updating ASOF join: each left row with the nearest right row for which ``left_time <comparison> right_time``,
    matched anew whenever either side changes. INNER or LEFT.

    ties      columns by which the smallest of equal right times is taken; empty: the last arrived
    tolerance greatest distance of the two times, in their unit; None: any

    Where both ports are append-only and have a watermark over their time, what can change no output goes with it.
    """

    kind: JoinKind
    left: Port
    right: Port
    left_time: str
    right_time: str
    comparison: str
    ties: tuple[str, ...] = ()
    tolerance: int | None = None
    null_safe: tuple[bool, ...] = ()
    pad: Pad = Pad.NULL
    max_buffered_bytes: int | None = None

    def __post_init__(self) -> None:
        if not self.ties:
            object.__setattr__(self, "right", replace(self.right, ties_by_arrival=True))


@dataclass(frozen=True)
class TemporalSpec:
    """The event-time temporal join: each left row with the version of the right row that was valid at ``left_time``.

    A version holds from its ``right_time`` to that of the next one under the same join key; one whose ``deleted`` is
    true ends the one before. A left row waits until the watermarks of both sides have passed it, and is answered once;
    a retraction before that takes it out, one after that takes its answer back. INNER or LEFT. The condition is tested
    on the version chosen by time.
    """

    kind: JoinKind
    left: Port
    right: Port
    left_time: str
    right_time: str
    deleted: str = ""
    """A column of the right port; empty: there are no deletes."""
    null_safe: tuple[bool, ...] = ()
    condition: Predicate | None = None
    pad: Pad = Pad.NULL
    max_buffered_bytes: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "right", replace(self.right, ties_by_arrival=True))


class Fold(StrEnum):
    """What an aggregate makes of the values of a group; NULLs are left out, of no values it makes NULL (COUNT: 0)."""

    COUNT = "count"
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True)
class Aggregation:
    """A column of the groups: ``fold`` over the values of the column ``argument``.

    argument   empty: COUNT counts the rows. For SUM and AVG an integer of 64 bits, a decimal or a float64
    type       of the result: int64 for COUNT and for SUM of integers, decimal(38, s) for SUM of decimals, float64 for
               AVG and for SUM of floats, that of the argument for MIN and MAX
    distinct   equal values count once
    """

    name: str
    fold: Fold
    argument: str
    type: pa.DataType
    distinct: bool = False


@dataclass(frozen=True)
class Closing:
    """When a group can gain no more rows: its ``column`` is behind the watermark of the input + ``shift``.

    shift   rows that are yet to come have ``column >= watermark + shift`` (ms, or the number itself)
    """

    column: str
    shift: int


@dataclass(frozen=True)
class AggregateSpec:
    """One row for each group of rows that agree in the keys of the port: the keys, then the aggregations.

    NULL is a key like any other. A change of a group is -1 of its old row and +1 of its new one; a group without rows
    is gone. Without keys all rows are one group, which stays, once there was a row.

    insertions   the input has no retractions: less is kept
    closing      groups go when they can gain no more rows; that is no retraction: the output stays
    closed       a row leaves once, when its group goes (EMIT ON WINDOW CLOSE); needs ``closing``
    """

    port: Port
    aggregations: tuple[Aggregation, ...]
    insertions: bool = False
    closing: Closing | None = None
    closed: bool = False


OneShotSpec = EnrichmentSpec | AsofOnceSpec | LatestSpec
"""Joins whose rows are answered once, so that the history of the right side must be there before them."""
OperatorSpec = (
    KeyedSpec
    | BidirectionalSpec
    | RangeSpec
    | EnrichmentSpec
    | AsofOnceSpec
    | LatestSpec
    | AsofSpec
    | TemporalSpec
    | AggregateSpec
)


@dataclass(frozen=True)
class Edge:
    """Where rows go: ``keys`` cut them into buckets; ``level`` is that of the receiving node, or the sink's."""

    id: int
    level: int
    keys: tuple[str, ...]


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
    def name(self) -> str:
        """What late rows are told apart by."""
        return self.alias or self.topic


@dataclass(frozen=True)
class OperatorNode:
    """An operator at a level; its inputs are edges in port order, its changes pass ``transforms`` on to ``output``.

    clock   by port: how much less than its watermark the time of a row may be that is yet to leave (0 or below); so the
            output has the least of these for its watermark. Empty: nothing is known of it
    """

    level: int
    operator: OperatorSpec
    inputs: tuple[int, ...]
    transforms: tuple[Transform, ...]
    output: int
    clock: tuple[int, ...] = ()


@dataclass(frozen=True)
class Sink:
    """The output of a query.

    columns    what a record's value holds, in order
    key        the columns of the rows that make up the Kafka key; may be hidden (not among ``columns``)
    updating   whether retractions can occur (``_tp_delta`` is written then)
    exchanged  rows meet by ``key`` before they are written, so that a retraction comes before its replacement even if
               two buckets made them; false where the last node is already cut by (a part of) the key
    format     'changelog' or 'upsert'
    """

    edge: int
    columns: tuple[str, ...]
    key: tuple[str, ...]
    key_names: tuple[str, ...]
    updating: bool
    exchanged: bool
    format: str = "changelog"


@dataclass(frozen=True)
class Dataflow:
    """A whole query; ``snapshots`` names the static tables that its transforms need, read once at its first start."""

    scans: tuple[TopicScan, ...]
    nodes: tuple[OperatorNode, ...]
    edges: tuple[Edge, ...]
    sink: Sink
    snapshots: tuple[str, ...] = ()

    @property
    def topics(self) -> list[str]:
        """Those that it reads, in order."""
        return sorted({scan.topic for scan in self.scans})

    @property
    def levels(self) -> int:
        """The number of levels with state; 0 for a query without."""
        return max((node.level for node in self.nodes), default=0)

    def edge(self, edge_id: int) -> Edge:
        return next(edge for edge in self.edges if edge.id == edge_id)

    def source(self, edge_id: int) -> TopicScan:
        """The scan whose watermark an edge has."""
        return next(scan for scan in self.scans if edge_id in self.carrying(scan))

    def carrying(self, scan: TopicScan) -> tuple[int, ...]:
        """The edges that have the watermark of a scan: its own, and those beyond operators of one input."""
        return self.beyond(scan.edge)

    def beyond(self, edge_id: int) -> tuple[int, ...]:
        """An edge, and those beyond operators of one input: they have its watermark."""
        edges = [edge_id]
        for node in self.nodes:
            if isinstance(node.operator, KeyedSpec | AggregateSpec) and node.inputs[0] in edges:
                edges.append(node.output)
        return tuple(edge for edge in edges if edge != self.sink.edge)

    def listening(self, edge_id: int) -> frozenset[int]:
        """The levels that need the marks of an edge: its own, and those of the edges whose watermark is made of it."""
        levels = {self.edge(edge_id).level}
        for node in self.clocks:
            if edge_id in node.inputs:
                levels |= {level for edge in self.beyond(node.output) for level in self.listening(edge)}
        return frozenset(levels)

    @property
    def clocks(self) -> tuple[OperatorNode, ...]:
        """The nodes that make a watermark of those of their inputs, upstream first."""
        return tuple(sorted((node for node in self.nodes if node.clock), key=lambda node: node.level))
