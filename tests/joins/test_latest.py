"""The LATEST join against its reference."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.joins.dataflow.ports import Ingest, JoinKind, Port
from dovetail.joins.operators.latest import LatestSpec
from dovetail.joins.operators.one_shot import Alignment
from dovetail.joins.reference.arrival import Arrived
from dovetail.joins.reference.latest import ReferenceLatest
from dovetail.joins.reference.rows import Record
from tests.joins.alone import Alone
from tests.joins.hard_stream import answers, ports
from tests.joins.harness import IDS, LEFT, RIGHT, agree, port, records, steps
from tests.tries import tries

COLUMNS = IDS, st.one_of(st.none(), st.integers(0, 2))


def keyed_by(one: Port, columns: int) -> Port:
    """The port with the first ``columns`` of its columns as primary key, if it has one."""
    return replace(one, primary_key=tuple(one.schema.names[:columns])) if one.primary_key else one


@settings(max_examples=tries(60))
@given(
    kind=st.sampled_from([JoinKind.INNER, JoinKind.LEFT, JoinKind.FULL]),
    right=st.sampled_from(list(Ingest)),
    columns=st.integers(1, 2),
    data=st.data(),
)
def test_it_is_the_reference(kind: JoinKind, right: Ingest, columns: int, data: st.DataObject) -> None:
    """CHANGES come from an operator: they have no arrival, and their retractions are of rows that are there."""
    left = data.draw(st.sampled_from(list(Ingest))) if kind is JoinKind.FULL else Ingest.APPEND
    spec = LatestSpec(kind, keyed_by(port(LEFT, left), columns), keyed_by(port(RIGHT, right), columns))
    alone = Alone(spec)
    key = tuple(range(columns))
    reference = ReferenceLatest(kind, Arrived(left, (0,), key), Arrived(right, (0,), key), (3, 3))
    agree(alone, reference, data.draw(steps(records(left, *COLUMNS), records(right, *COLUMNS))))


def test_of_rows_that_stay_only_the_last_of_each_key_is_kept() -> None:
    alone = Alone(LatestSpec(JoinKind.LEFT, port(LEFT, Ingest.APPEND), port(RIGHT, Ingest.APPEND)))
    for n in range(20):
        alone.on_batch([], [((key, "a", n), 1) for key in (0, 1, None) for _ in range(3)])
    assert alone.held() == 2
    assert alone.on_batch([((1, "x", 0), 1)], []) == Counter({(1, "x", 0, 1, "a", 19): 1})


def test_when_the_last_row_goes_the_one_before_it_counts() -> None:
    right = port(RIGHT, Ingest.UPSERT)
    alone = Alone(LatestSpec(JoinKind.LEFT, port(LEFT, Ingest.APPEND), right))
    left_row = ((1, "x", 0), 1)

    def answer(*right_records: Record) -> object:
        (row,) = alone.on_batch([left_row], list(right_records))
        return row[4]

    assert answer(((1, "a", 0), 1), ((1, "b", 0), 1), ((1, "c", 0), 1)) == "c"
    assert answer(((1, "a", 0), 1)) == "a"
    assert answer(((1, "a", None), -1)) == "c"
    assert answer(((1, "b", None), -1)) == "c"
    alone.restart()
    assert answer(((1, "c", None), -1)) is None
    assert alone.held() == 0


def test_a_later_batch_comes_last_whatever_its_partition() -> None:
    """Arrival is a place in a partition; two partitions are compared by the batches that brought them."""
    alone = Alone(LatestSpec(JoinKind.INNER, port(LEFT, Ingest.APPEND), port(RIGHT, Ingest.UPSERT)), arrived=1 << 44)
    alone.on_batch([], [((1, "a", 0), 1)])
    alone.arrived = 0
    alone.on_batch([], [((1, "b", 0), 1)])
    assert alone.on_batch([((1, "x", 0), 1)], []) == Counter({(1, "x", 0, 1, "b", 0): 1})


@pytest.mark.parametrize("kind", [JoinKind.LEFT, JoinKind.FULL])
def test_aligned_left_rows_wait_for_the_right_side(kind: JoinKind) -> None:
    left, right = port(LEFT, Ingest.APPEND), port(RIGHT, Ingest.APPEND)
    alone = Alone(LatestSpec(kind, left, right, alignment=Alignment("l.v", 2)))
    assert alone.on_batch([((1, "x", 5), 1), ((1, "y", 3), 1)], []) == Counter()
    assert alone.on_watermark(None, None) == Counter()
    assert alone.on_watermark(None, 4) == Counter()
    alone.on_batch([], [((1, "a", 5), 1)])
    assert alone.on_watermark(None, 5) == Counter({(1, "y", 3, 1, "a", 5): 1})
    alone.restart()
    alone.on_batch([], [((1, "b", 7), 1)])
    assert alone.on_watermark(None, 7) == Counter({(1, "x", 5, 1, "b", 7): 1})
    assert alone.held("0.waiting") == 0


def test_of_aligned_left_rows_that_leave_together_the_last_in_time_is_the_last() -> None:
    left, right = port(LEFT, Ingest.APPEND), port(RIGHT, Ingest.APPEND)
    alone = Alone(LatestSpec(JoinKind.FULL, left, right, alignment=Alignment("l.v", 1)))
    alone.on_batch([((1, "late", 5), 1), ((1, "early", 3), 1)], [])
    alone.on_watermark(None, 9)
    assert alone.on_batch([], [((1, "a", 9), 1)]) == Counter({(1, "late", 5, 1, "a", 9): 1})


def test_the_hard_stream() -> None:
    assert answers(LatestSpec(JoinKind.LEFT, *ports(Ingest.APPEND, Ingest.CHANGELOG))) == [
        ["+ - n 10 | - - -", "+ 1 a 10 | 1 s 10", "+ 2 b - | 2 t 5"],
        ["+ 1 a 10 | 1 r 10"],
        ["+ 1 e 30 | 1 w 25", "+ 3 c 20 | 3 u 18"],
        ["+ 1 d 12 | 1 x 11"],
        ["+ 4 z 99 | 4 y 99"],
    ]


def test_the_hard_stream_answered_on_both_sides() -> None:
    first = ["+ - - - | 1 r 10", "+ - - - | 1 s 10", "+ - - - | 2 t 5", "+ - n 10 | - - -"]
    assert answers(LatestSpec(JoinKind.FULL, *ports(Ingest.APPEND, Ingest.CHANGELOG))) == [
        [*first, "+ 1 a 10 | 1 s 10", "+ 2 b - | 2 t 5"],
        ["+ - - - | - m 10", "+ 1 a 10 | 1 r 10"],
        ["+ - - - | 3 u 18", "+ 1 a 10 | 1 w 25", "+ 1 e 30 | 1 w 25", "+ 3 c 20 | 3 u 18"],
        ["+ 1 d 12 | 1 x 11", "+ 1 e 30 | 1 x 11"],
        ["+ - - - | 4 y 99", "+ 4 z 99 | 4 y 99"],
    ]
