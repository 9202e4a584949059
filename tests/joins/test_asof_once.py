"""The one-shot ASOF join against its references: without alignment, and what alignment keeps for rows that wait."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.joins.dataflow.ports import Ingest, JoinKind, Port
from dovetail.joins.operators.asof_once import AsofOnceSpec
from dovetail.joins.operators.latest import LatestSpec
from dovetail.joins.operators.one_shot import Alignment
from dovetail.joins.reference.arrival import Arrived, always
from dovetail.joins.reference.asof_aligned import ReferenceAsofAligned
from dovetail.joins.reference.asof_once import ReferenceAsof
from dovetail.joins.reference.rows import Record
from tests.joins.alone import Alone
from tests.joins.hard_stream import answers, ports
from tests.joins.harness import (
    COMPARISONS,
    IDS,
    INNER_OR_LEFT,
    LEFT,
    RIGHT,
    LeftBelowRight,
    Step,
    left_below_right,
    port,
    records,
    steps,
)
from tests.joins.hosted import Hosted
from tests.tries import tries

timed: st.SearchStrategy[list[Record]] = st.lists(
    st.tuples(st.tuples(st.integers(0, 2), st.sampled_from("xyz"), st.integers(0, 9)), st.just(1)), max_size=6
)


@settings(max_examples=tries(60))
@given(kind=INNER_OR_LEFT, comparison=st.sampled_from(COMPARISONS), keep=st.integers(1, 3), drawn=steps(timed, timed))
def test_it_is_the_reference(kind: JoinKind, comparison: str, keep: int, drawn: list[Step]) -> None:
    """The reference has its rows as (key, time, id)."""
    hosted = Hosted(
        AsofOnceSpec(kind, port(LEFT, Ingest.APPEND), port(RIGHT, Ingest.APPEND), "l.v", "r.w", comparison, keep)
    )
    reference = ReferenceAsof(kind, comparison, keep)
    for left, right, restart in drawn:
        turned = [[((k, t, i), d) for (k, i, t), d in part] for part in (left, right)]
        answers = reference.on_batch(*turned).items()
        expected = Counter({(a, c, b, d, f, e): count for (a, b, c, d, e, f), count in answers})
        assert hosted.on_batch(left, right) == expected
        if restart:
            hosted.restart()


def up_to(latest: int) -> st.SearchStrategy[int | None]:
    return st.one_of(st.integers(0, latest), st.none())


@settings(max_examples=tries(60))
@given(
    kind=INNER_OR_LEFT,
    comparison=st.sampled_from(COMPARISONS),
    keep=st.integers(1, 3),
    lag=st.integers(1, 3),
    residual=st.booleans(),
    data=st.data(),
)
def test_aligned_asof_is_the_reference(
    kind: JoinKind, comparison: str, keep: int, lag: int, residual: bool, data: st.DataObject
) -> None:
    alone = Alone(
        AsofOnceSpec(
            kind,
            port(LEFT, Ingest.APPEND),
            port(RIGHT, Ingest.APPEND),
            "l.v",
            "r.w",
            comparison,
            keep,
            LeftBelowRight() if residual else None,
            alignment=Alignment("l.v", lag),
        )
    )
    condition = left_below_right if residual else always
    right = Arrived(Ingest.APPEND, (0,))
    reference = ReferenceAsofAligned(kind, (0,), right, (3, 3), (2, 2), comparison, keep, lag, condition)
    silent, reached = data.draw(st.integers(0, 3)), 0
    moves = st.sampled_from([0, 1, 2, 5])
    rows = records(Ingest.APPEND, IDS, up_to(20))
    drawn = data.draw(st.lists(st.tuples(rows, rows, moves, st.booleans()), max_size=12))
    for step, (left_records, right_records, move, restart) in enumerate(drawn):
        assert alone.on_batch(left_records, right_records) == reference.on_batch(left_records, right_records)
        reached += move
        watermark = None if step < silent else reached
        assert alone.on_watermark(None, watermark) == reference.on_watermark((None, watermark))
        if restart:
            alone.restart()


def test_versions_that_a_waiting_row_asks_for_stay_until_it_is_answered() -> None:
    left, right = port(LEFT, Ingest.APPEND), port(RIGHT, Ingest.APPEND)
    alone = Alone(AsofOnceSpec(JoinKind.LEFT, left, right, "l.v", "r.w", ">=", 1, alignment=Alignment("l.v", 1)))
    alone.on_batch([((1, "x", 5), 1)], [((1, "a", at), 1) for at in range(20)])
    assert alone.held("0.right") == 15, "those from 5 on; 5 itself is the newest that is not after the left row"
    assert alone.on_watermark(None, 10) == Counter({(1, "x", 5, 1, "a", 5): 1})
    assert alone.held("0.right") == 1


def test_a_row_that_waits_by_another_time_than_it_asks_by_keeps_all_versions() -> None:
    left, right = port(LEFT.append(pa.field("l.at", pa.int64())), Ingest.APPEND), port(RIGHT, Ingest.APPEND)
    alone = Alone(AsofOnceSpec(JoinKind.LEFT, left, right, "l.v", "r.w", ">=", 1, alignment=Alignment("l.at", 1)))
    alone.on_batch([((1, "x", 2, 50), 1)], [((1, "a", at), 1) for at in range(20)])
    assert alone.on_watermark(None, 51) == Counter({(1, "x", 2, 50, 1, "a", 2): 1})
    assert alone.held("0.right") == 1


def test_the_hard_stream() -> None:
    spec = AsofOnceSpec(JoinKind.LEFT, *ports(Ingest.APPEND, Ingest.CHANGELOG), "l.v", "r.w", ">=")
    assert answers(spec) == [
        ["+ - n 10 | - - -", "+ 1 a 10 | 1 s 10", "+ 2 b - | - - -"],
        ["+ 1 a 10 | 1 r 10"],
        ["+ 1 e 30 | 1 w 25", "+ 3 c 20 | 3 u 18"],
        ["+ 1 d 12 | 1 x 11"],
        ["+ 4 z 99 | 4 y 99"],
    ]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_alignment_waits_to_the_unit_of_the_time(unit: str) -> None:
    """A row at 2.0005 s waits until the right watermark has reached it, and not 2 s alone."""
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    at = 2 * per_second + per_second // 2000
    schema = pa.schema([("l.k", pa.int64()), ("l.t", pa.timestamp(unit))])
    left, right = Port(schema, ("l.k",), Ingest.APPEND), port(RIGHT, Ingest.APPEND)
    alone = Alone(LatestSpec(JoinKind.LEFT, left, right, alignment=Alignment("l.t", 1000)))
    row = (1, pa.scalar(at, pa.timestamp(unit)).as_py() if unit != "ns" else at)
    alone.on_batch([(row, 1)], [])
    due_ms = -(-at * 1000 // per_second) + 1000
    assert alone.on_watermark(None, due_ms - 1) == Counter()
    assert sum(alone.on_watermark(None, due_ms).values()) == 1
