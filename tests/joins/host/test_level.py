"""How a level takes its batches: what is late, what watermarks let go, and how marks reach the operators beyond."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from dovetail.changelog.changes import DELTA, Changes
from dovetail.changelog.schema import StreamSchema
from dovetail.joins.dataflow.graph import Dataflow, Edge, OperatorNode, Outlet, Sink, TopicScan
from dovetail.joins.dataflow.ports import Ingest, JoinKind, Port, Watermark
from dovetail.joins.dataflow.specification import OperatorSpec
from dovetail.joins.host.in_memory import LocalQuery
from dovetail.joins.inputs.watermarks import PartitionTime
from dovetail.joins.operators.bidirectional import BidirectionalSpec
from dovetail.joins.reference.rows import Row
from dovetail.joins.state.store import RunStore
from tests.joins.harness import net

LEFT = pa.schema([("l.k", pa.int64()), ("l.t", pa.timestamp("ms"))])
RIGHT = pa.schema([("r.k", pa.int64()), ("r.t", pa.timestamp("ms"))])
BOTH = pa.schema([*LEFT, *RIGHT])


@dataclass
class Waiting:
    """A toy operator: left rows leave when the right watermark has passed them; retractions leave at once."""

    held: list[pa.Table] = field(default_factory=list)
    seen: list[tuple[int | None, ...]] = field(default_factory=list)
    dangling: int = 0

    def on_batch(self, inputs: Sequence[pa.Table | None]) -> Changes:
        left = inputs[0]
        if left is None:
            return Changes.empty(BOTH)
        gone = left.column(DELTA).to_numpy() < 0
        self.held.append(left.filter(pa.array(~gone)))
        return padded(left.filter(pa.array(gone)))

    def on_watermark(self, watermarks: Sequence[int | None]) -> Changes:
        self.seen.append(tuple(watermarks))
        right = watermarks[-1]
        if right is None or not self.held:
            return Changes.empty(BOTH)
        rows = pa.concat_tables(self.held).combine_chunks()
        passed = rows.column("l.t").cast(pa.int64()).to_numpy() < right
        self.held = [rows.filter(pa.array(~passed))]
        return padded(rows.filter(pa.array(passed)))


@dataclass(frozen=True)
class WaitingSpec(OperatorSpec):
    inputs: tuple[Port, ...]
    operator: Waiting

    @property
    def ports(self) -> tuple[Port, ...]:
        return self.inputs

    def open(self, store: RunStore, name: str) -> Waiting:
        return self.operator


def padded(left: pa.Table) -> Changes:
    nulls = [pa.nulls(left.num_rows, column.type) for column in RIGHT]
    return Changes.with_deltas(
        pa.table([*(left.column(name) for name in LEFT.names), *nulls], schema=BOTH), Changes(left).deltas
    )


def dataflow(toy: Waiting | None = None, **options: bool) -> Dataflow:
    """Two append inputs with watermarks of 2 ms of delay into a join, or a toy."""
    watermarks = [Watermark(name, 2, **options) for name in ("l.t", "r.t")]
    scans = tuple(
        TopicScan(StreamSchema(name, ()), name, (), (), edge, watermarks[edge])
        for edge, name in enumerate(["left", "right"])
    )
    left, right = (
        Port(schema, (schema.names[0],), Ingest.APPEND, watermark=watermark)
        for schema, watermark in zip((LEFT, RIGHT), watermarks, strict=True)
    )
    operator = BidirectionalSpec(JoinKind.INNER, left, right) if toy is None else WaitingSpec((left, right), toy)
    return Dataflow(
        scans=scans,
        nodes=(OperatorNode(1, operator, (0, 1), (Outlet(2),)),),
        edges=(Edge(0, 1, ("l.k",)), Edge(1, 1, ("r.k",)), Edge(2, 2, ())),
        sink=Sink(2, tuple(BOTH.names), (), (), True, False),
    )


def left(*times: int, deltas: Sequence[int] = ()) -> dict[int, pa.Table]:
    return {0: rows(LEFT, times, deltas)}


def right(*times: int) -> dict[int, pa.Table]:
    return {1: rows(RIGHT, times)}


def rows(schema: pa.Schema, times: Sequence[int], deltas: Sequence[int] = ()) -> pa.Table:
    columns = [pa.array([1] * len(times), pa.int64()), pa.array(times, pa.int64()).cast(pa.timestamp("ms"))]
    table = pa.table(columns, schema=schema)
    return table.append_column(DELTA, pa.array(deltas or np.ones(len(times), np.int64), pa.int64()))


def times(emitted: Counter[Row]) -> list[int]:
    return sorted(round(row[1].timestamp() * 1000) for row in emitted)  # type: ignore[attr-defined]


def test_rows_are_judged_by_the_watermark_of_the_batches_before() -> None:
    query = LocalQuery(dataflow(), buckets=1)

    query.feed(left(10, 1))
    query.feed({**left(7, 8, 20), **right(1, 8)})

    assert query.counters["late"] == query.counters["late.0"] == 1
    (late,) = query.late
    assert (late.edge, late.watermark, late.rows.column("l.t").cast(pa.int64()).to_pylist()) == (0, 8, [7])
    assert late.rows.schema == LEFT


def test_retractions_are_never_late() -> None:
    query = LocalQuery(dataflow(), buckets=1)
    query.feed({**left(10, 1), **right(1)})

    assert set(net(query.feed(left(1, deltas=[-1]))).values()) == {-1}
    assert query.counters["late"] == 0


def test_what_a_watermark_lets_go_leaves_with_the_batch_that_moved_it() -> None:
    waiting = Waiting()
    query = LocalQuery(dataflow(waiting), buckets=1)

    assert net(query.feed(left(1, 5))) == Counter()
    assert waiting.seen == [(3, None)]
    assert times(net(query.feed(right(4)))) == [1]
    assert times(net(query.feed(right(9)))) == [5]
    assert waiting.seen[-1] == (3, 7)


def test_rows_of_the_batch_and_of_its_watermark_cancel_out() -> None:
    waiting = Waiting()
    query = LocalQuery(dataflow(waiting), buckets=1)
    query.feed(left(5))

    assert query.feed({**left(5, deltas=[-1]), **right(50)}) is None


def test_a_watermark_that_is_not_known_asks_nobody() -> None:
    waiting = Waiting()
    LocalQuery(dataflow(waiting, shared=True), buckets=1).feed(left(1))

    assert waiting.seen == []


def test_an_idle_input_and_a_heartbeat_let_held_rows_go() -> None:
    waiting = Waiting()
    query = LocalQuery(dataflow(waiting), buckets=1)
    query.feed(left(5))

    assert times(net(query.feed({}, [PartitionTime(1, 0, None)]))) == []
    assert times(net(query.feed(left(8)))) == [5]
    assert times(net(query.feed({}, [PartitionTime(1, 0, 11)]))) == [8]


def test_marks_reach_operators_beyond_a_keyed_one() -> None:
    """Users by their key, then the join: the watermark of the scan is that of both."""
    waiting = Waiting()
    flat = dataflow(waiting)
    _, users = flat.nodes[0].operator.ports
    upserts = replace(users, ingest=Ingest.UPSERT, primary_key=("r.k",))
    keyed = OperatorNode(1, WaitingSpec((upserts,), waiting), (1,), (Outlet(3),))
    deep = replace(
        flat,
        nodes=(keyed, replace(flat.nodes[0], level=2, inputs=(0, 3))),
        edges=(Edge(0, 2, ("l.k",)), Edge(1, 1, ("r.k",)), Edge(2, 3, ()), Edge(3, 2, ("r.k",))),
    )

    LocalQuery(deep, buckets=1).feed({}, [PartitionTime(1, 0, 20)])

    assert deep.beyond(deep.scans[1].edge) == (1, 3)
    assert waiting.seen == [(18,), (None, 18)]
