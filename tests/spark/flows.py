"""Dataflows of the tests, written by hand as the planner would write them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.schema import Column, Kind, StreamSchema
from dovetail.joins.aggregates.aggregate import AggregateSpec
from dovetail.joins.aggregates.aggregation import Aggregation, Fold
from dovetail.joins.dataflow.graph import Dataflow, Edge, OperatorNode, Outlet, Sink, TopicScan
from dovetail.joins.dataflow.ports import Ingest, JoinKind, Port, Watermark
from dovetail.joins.dataflow.state_memory import StateMemory
from dovetail.joins.operators.bidirectional import BidirectionalSpec
from dovetail.joins.operators.enrichment import EnrichmentSpec
from dovetail.joins.operators.keyed import KeyedSpec
from dovetail.joins.operators.range import Band, RangeSpec

ORDERS = StreamSchema("orders", (Column("k", pa.int64()), Column("a", pa.string())))
CLICKS = StreamSchema("clicks", (Column("k", pa.int64()), Column("b", pa.string())))
USERS = StreamSchema(
    "users", (Column("id", pa.int64()), Column("k", pa.int64()), Column("name", pa.string())), Kind.UPSERT, ("id",)
)
AT = pa.timestamp("ms")
TIMED_ORDERS = StreamSchema("timed_orders", (Column("k", pa.int64()), Column("at", AT)))
TIMED_CLICKS = StreamSchema("timed_clicks", (Column("k", pa.int64()), Column("at", AT)))

_LEFT = pa.schema([("l.k", pa.int64()), ("l.a", pa.string())])
_RIGHT = pa.schema([("r.k", pa.int64()), ("r.b", pa.string())])
_TIMED_LEFT = pa.schema([("l.k", pa.int64()), ("l.at", AT)])
_TIMED_RIGHT = pa.schema([("r.k", pa.int64()), ("r.at", AT)])
_USER = pa.schema([("u.id", pa.int64()), ("u.k", pa.int64()), ("u.name", pa.string())])


@dataclass(frozen=True)
class Prefixed:
    """The binder's first transform: each column gets the alias of its FROM item."""

    alias: str
    columns: tuple[str, ...]

    def __call__(self, rows: pa.Table) -> pa.Table:
        return rows.rename_columns(
            [f"{self.alias}.{name}" if name in self.columns else name for name in rows.column_names]
        )

    def bound(self, snapshots: Mapping[str, pa.Table]) -> Prefixed:
        return self


@dataclass(frozen=True)
class Greeted:
    """A transform that looks into the static table ``greetings``."""

    word: str = ""

    def __call__(self, rows: pa.Table) -> pa.Table:
        greeting = pa.array([self.word] * rows.num_rows, pa.string())
        return rows.add_column(0, "greeting", greeting)

    def bound(self, snapshots: Mapping[str, pa.Table]) -> Greeted:
        return Greeted(snapshots["greetings"].column("word")[0].as_py())


def scan(
    stream: StreamSchema, topic: str, alias: str, columns: tuple[str, ...], edge: int, **options: object
) -> TopicScan:
    return TopicScan(stream, topic, columns, (Prefixed(alias, columns),), edge, alias=alias, **options)  # type: ignore[arg-type]


def orders_clicks(
    left: str, right: str, kind: JoinKind = JoinKind.INNER, exchanged: bool = False, limit: int | None = None
) -> Dataflow:
    """``SELECT l.k, l.a, r.b FROM left AS l JOIN right AS r ON l.k = r.k``, both append."""
    operator = BidirectionalSpec(
        kind,
        Port(_LEFT, ("l.k",), Ingest.APPEND),
        Port(_RIGHT, ("r.k",), Ingest.APPEND),
        max_buffered_bytes=limit,
    )
    return Dataflow(
        scans=(scan(ORDERS, left, "l", ("k", "a"), 0), scan(CLICKS, right, "r", ("k", "b"), 1)),
        nodes=(OperatorNode(1, operator, (0, 1), (Outlet(2),)),),
        edges=(Edge(0, 1, ("l.k",)), Edge(1, 1, ("r.k",)), Edge(2, 2, ("l.k",))),
        sink=Sink(2, ("l.k", "l.a", "r.b"), ("l.k",), ("k",), kind is not JoinKind.INNER, exchanged),
    )


def in_portions(dataflow: Dataflow, memory: StateMemory) -> Dataflow:
    """With so much of its state in memory at once."""
    return replace(dataflow, nodes=tuple(replace(node, memory=memory) for node in dataflow.nodes))


def orders_near_clicks(left: str, right: str, idle_ms: int | None = None, exchanged: bool = False) -> Dataflow:
    """``SELECT l.k, l.at, r.at FROM left AS l LEFT JOIN right AS r ON l.k = r.k AND date_diff_within(10s, l.at, r.at)``

    Both are append, with watermarks of no delay; padded rows leave once.
    """
    watermark = Watermark("at", 0, idle_ms)
    left_port = Port(_TIMED_LEFT, ("l.k",), Ingest.APPEND, watermark=replace(watermark, column="l.at"))
    right_port = Port(_TIMED_RIGHT, ("r.k",), Ingest.APPEND, watermark=replace(watermark, column="r.at"))
    operator = RangeSpec(JoinKind.LEFT, left_port, right_port, Band("l.at", "r.at", -10_000, 10_000), append=True)
    return Dataflow(
        scans=(
            scan(TIMED_ORDERS, left, "l", ("k", "at"), 0, watermark=watermark),
            scan(TIMED_CLICKS, right, "r", ("k", "at"), 1, watermark=watermark),
        ),
        nodes=(OperatorNode(1, operator, (0, 1), (Outlet(2),)),),
        edges=(Edge(0, 1, ("l.k",)), Edge(1, 1, ("r.k",)), Edge(2, 2, ("l.k",))),
        sink=Sink(2, ("l.k", "l.at", "r.at"), ("l.k",), ("k",), False, exchanged),
    )


def orders_users(orders: str, users: str) -> Dataflow:
    """Two levels: users by their primary key ``id``, then the join by ``k``; a user that moves to another ``k`` moves
    its rows to another bucket, so the output is exchanged."""
    join = BidirectionalSpec(
        JoinKind.INNER, Port(_LEFT, ("l.k",), Ingest.APPEND), Port(_USER, ("u.k",), Ingest.CHANGES)
    )
    return Dataflow(
        scans=(scan(ORDERS, orders, "l", ("k", "a"), 0), scan(USERS, users, "u", ("id", "k", "name"), 1)),
        nodes=(
            OperatorNode(1, KeyedSpec(Port(_USER, ("u.id",), Ingest.UPSERT, ("u.id",))), (1,), (Outlet(2),)),
            OperatorNode(2, join, (0, 2), (Outlet(3),)),
        ),
        edges=(Edge(0, 2, ("l.k",)), Edge(1, 1, ("u.id",)), Edge(2, 2, ("u.k",)), Edge(3, 3, ("u.id",))),
        sink=Sink(3, ("l.a", "u.name"), ("u.id",), ("id",), True, True),
    )


@dataclass(frozen=True)
class Again:
    """The columns of users under another alias."""

    def __call__(self, rows: pa.Table) -> pa.Table:
        return rows.rename_columns([name.replace("u.", "v.", 1) for name in rows.column_names])

    def bound(self, snapshots: Mapping[str, pa.Table]) -> Again:
        return self


def orders_users_twice(orders: str, users: str, shared: bool) -> Dataflow:
    """Three levels: ``orders_users``, and users once more by ``id``; ``shared``: kept once, for both joins."""
    flow = orders_users(orders, users)
    keyed, first = flow.nodes
    again = pa.schema([(field.name.replace("u.", "v."), field.type) for field in _USER])
    both = pa.schema([*_LEFT, *_USER])
    join = BidirectionalSpec(
        JoinKind.LEFT, Port(both, ("u.id",), Ingest.CHANGES), Port(again, ("v.id",), Ingest.CHANGES)
    )
    readers = (*keyed.outlets, Outlet(4, (Again(),)))
    nodes = (
        (replace(keyed, outlets=readers), first)
        if shared
        else (keyed, first, replace(keyed, inputs=(6,), outlets=readers[1:]))
    )
    return Dataflow(
        scans=flow.scans if shared else (*flow.scans, replace(flow.scans[1], edge=6)),
        nodes=(*nodes, OperatorNode(3, join, (3, 4), (Outlet(5),))),
        edges=(*flow.edges, Edge(4, 3, ("v.id",)), Edge(5, 4, ("u.id",)), Edge(6, 1, ("u.id",))),
        sink=Sink(5, ("l.a", "u.name", "v.name"), ("u.id",), ("id",), True, False),
    )


def enriched_orders(orders: str, users: str, latest: bool = True) -> Dataflow:
    """Each order once, with the users held when it comes; orders are read from the end of their topic, or all."""
    right = Port(_USER, ("u.k",), Ingest.CHANGES)
    return Dataflow(
        scans=(
            scan(ORDERS, orders, "l", ("k", "a"), 0, starts_latest=latest),
            scan(USERS, users, "u", ("id", "k", "name"), 1),
        ),
        nodes=(
            OperatorNode(1, KeyedSpec(Port(_USER, ("u.id",), Ingest.UPSERT, ("u.id",))), (1,), (Outlet(2),)),
            OperatorNode(
                2, EnrichmentSpec(JoinKind.LEFT, Port(_LEFT, ("l.k",), Ingest.APPEND), right), (0, 2), (Outlet(3),)
            ),
        ),
        edges=(Edge(0, 2, ("l.k",)), Edge(1, 1, ("u.id",)), Edge(2, 2, ("u.k",)), Edge(3, 3, ("l.k",))),
        sink=Sink(3, ("l.k", "l.a", "u.name"), ("l.k",), ("k",), False, False),
    )


def greeted_orders(orders: str) -> Dataflow:
    """No state at all: ``SELECT greeting, k, a`` with the greeting out of a static table."""
    columns = ("k", "a")
    return Dataflow(
        scans=(TopicScan(ORDERS, orders, columns, (Prefixed("l", columns), Greeted()), 0),),
        nodes=(),
        edges=(Edge(0, 1, ("l.k",)),),
        sink=Sink(0, ("greeting", "l.k", "l.a"), ("l.k",), ("k",), False, False),
        snapshots=("greetings",),
    )


@dataclass(frozen=True)
class Above:
    """``k > least``: a WHERE."""

    least: int

    def __call__(self, rows: pa.Table) -> pa.Table:
        return rows.filter(pc.greater(rows.column("o.k"), self.least))

    def bound(self, snapshots: Mapping[str, pa.Table]) -> Above:
        return self


def orders_counted(topic: str, above: int) -> Dataflow:
    """``SELECT count(*) AS n FROM orders o WHERE o.k > above``: no keys, so all rows meet in one bucket."""
    orders = scan(ORDERS, topic, "o", ("k",), 0)
    orders = replace(orders, transforms=(*orders.transforms, Above(above)))
    port = Port(pa.schema([("o.k", pa.int64())]), (), Ingest.APPEND)
    counted = AggregateSpec(port, (Aggregation("n", Fold.COUNT, "", pa.int64()),), insertions=True)
    return Dataflow(
        scans=(orders,),
        nodes=(OperatorNode(1, counted, (0,), (Outlet(1),)),),
        edges=(Edge(0, 1, ()), Edge(1, 2, ())),
        sink=Sink(1, ("n",), (), (), True, False),
    )
