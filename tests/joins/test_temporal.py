"""The event-time temporal join against its reference, and what becomes of its state."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.joins.dataflow.ports import Ingest, JoinKind, Port
from dovetail.joins.operators.temporal import TemporalSpec
from dovetail.joins.reference.arrival import Arrived
from dovetail.joins.reference.rows import Row
from dovetail.joins.reference.temporal import ReferenceTemporal
from tests.joins.alone import Alone
from tests.joins.hard_stream import answers, ports
from tests.joins.harness import IDS, INNER_OR_LEFT, LEFT, after, port, records
from tests.tries import tries

VERSIONS = pa.schema([("r.k", pa.int64()), ("r.w", pa.int64()), ("r.gone", pa.bool_()), ("r.t", pa.int64())])
RIGHT = Port(VERSIONS, ("r.k",), Ingest.APPEND)
TIMES = st.sampled_from([0, 1, 2, 3, 5, None])


@dataclass(frozen=True)
class OddVersion:
    """``r.w % 2 = 1`` as a residual condition; picklable."""

    def __call__(self, rows: pa.Table) -> npt.NDArray[np.bool_]:
        return np.array([w % 2 == 1 for w in rows.column("r.w").to_pylist()], dtype=np.bool_)


def odd_version(left: Row, right: Row) -> bool:
    return int(str(right[1])) % 2 == 1


versions = records(Ingest.APPEND, st.integers(0, 3), st.sampled_from([True, False, False, None]), TIMES)
moves = st.tuples(st.sampled_from([None, 0, 1, 3]), st.sampled_from([None, 0, 1, 3]))


@settings(max_examples=tries(60))
@given(kind=INNER_OR_LEFT, left=st.sampled_from(Ingest), deletes=st.booleans(), residual=st.booleans(), data=st.data())
def test_it_is_the_reference(kind: JoinKind, left: Ingest, deletes: bool, residual: bool, data: st.DataObject) -> None:
    """Insertions come no earlier than the watermarks; retractions may, of rows that were answered or were not."""
    condition = OddVersion() if residual else None
    spec = TemporalSpec(kind, port(LEFT, left), RIGHT, "l.v", "r.t", "r.gone" if deletes else "", (), condition)
    alone = Alone(spec)
    sides = Arrived(left, (0,), (0, 1)), Arrived(Ingest.APPEND, (0,))
    reference = ReferenceTemporal(kind, *sides, (3, 4), (2, 3), 2 if deletes else None)
    if residual:
        reference.condition = odd_version
    reached = [0, 0]
    content: Counter[Row] = Counter()
    for left_records, right_records, (moved_left, moved_right), restart in data.draw(
        st.lists(st.tuples(records(left, IDS, TIMES), versions, moves, st.booleans()), max_size=10)
    ):
        taken = []
        if left is not Ingest.APPEND and reference.left.rows:
            taken = data.draw(st.lists(st.sampled_from(reference.left.rows), max_size=2, unique=True))
        fresh = after([one for one in left_records if one[1] > 0 or left is not Ingest.CHANGES], reached[0])
        batch = [*((row, -1) for row in taken), *fresh]
        versions_now = after(right_records, reached[1])
        changes = alone.on_batch(batch, versions_now)
        assert changes == reference.on_batch(batch, versions_now)
        reached = [reached[0] + (moved_left or 0), reached[1] + (moved_right or 0)]
        watermarks = (None if moved_left is None else reached[0], None if moved_right is None else reached[1])
        answers = alone.on_watermark(*watermarks)
        assert answers == reference.on_watermark(watermarks)
        for one in (changes, answers):
            content.update(one)
            assert min(content.values(), default=0) >= 0
        if restart:
            alone.restart()


def test_a_left_row_waits_until_no_version_of_its_time_can_come() -> None:
    alone = Alone(TemporalSpec(JoinKind.LEFT, port(LEFT, Ingest.APPEND), RIGHT, "l.v", "r.t"))
    assert alone.on_batch([((1, "x", 5), 1)], [((1, 10, None, 3), 1)]) == Counter()
    assert alone.on_watermark(9, 5) == Counter()
    assert alone.on_batch([], [((1, 11, None, 5), 1)]) == Counter()
    assert alone.on_watermark(5, 6) == Counter()
    assert alone.on_watermark(6, 6) == Counter({(1, "x", 5, 1, 11, None, 5): 1})


def test_only_the_version_of_the_time_is_tried() -> None:
    spec = TemporalSpec(JoinKind.LEFT, port(LEFT, Ingest.APPEND), RIGHT, "l.v", "r.t", "r.gone", (), OddVersion())
    alone = Alone(spec)
    alone.on_batch(
        [((1, "odd", 1), 1), ((1, "even", 2), 1), ((2, "deleted", 2), 1), ((2, "again", 3), 1)],
        [((1, 1, None, 1), 1), ((1, 2, None, 2), 1), ((2, 1, None, 1), 1), ((2, 3, True, 2), 1), ((2, 5, None, 3), 1)],
    )
    pad = (None, None, None, None)
    assert alone.on_watermark(9, 9) == Counter(
        {
            (1, "odd", 1, 1, 1, None, 1): 1,
            (1, "even", 2, *pad): 1,
            (2, "deleted", 2, *pad): 1,
            (2, "again", 3, 2, 5, None, 3): 1,
        }
    )


def test_a_retraction_takes_back_what_was_answered() -> None:
    alone = Alone(TemporalSpec(JoinKind.LEFT, port(LEFT, Ingest.UPSERT), RIGHT, "l.v", "r.t"))
    alone.on_batch([((1, "x", 2), 1), ((1, "y", 20), 1)], [((1, 10, None, 1), 1)])
    answer = (1, "x", 2, 1, 10, None, 1)
    assert alone.on_watermark(9, 9) == Counter({answer: 1})
    alone.on_batch([], [((1, 11, None, 10), 1)])
    alone.restart()
    assert alone.on_batch([((1, "x", None), -1), ((1, "y", None), -1)], []) == Counter({answer: -1})
    assert alone.on_watermark(99, 99) == Counter()
    assert alone.held() == 1


def test_what_nobody_can_ask_for_goes() -> None:
    alone = Alone(TemporalSpec(JoinKind.LEFT, port(LEFT, Ingest.APPEND), RIGHT, "l.v", "r.t", "r.gone"))
    rows = [((1, "", at), 1) for at in range(100)]
    alone.on_batch(rows, [((key, at, key == 2 and at == 49, at), 1) for at in range(100) for key in (1, 2)])
    alone.on_watermark(60, 50)
    held = [alone.held(f"0.{name}") for name in ("waiting", "right", "right.before")]
    assert held == [50, 100, 1], "the versions from 50 on, and of key 1 that of 49: that of key 2 is a delete"
    alone.on_watermark(1000, 1000)
    assert alone.held() == 2


def test_a_version_that_is_retracted_holds_no_more() -> None:
    right = Port(VERSIONS, ("r.k",), Ingest.CHANGES)
    alone = Alone(TemporalSpec(JoinKind.LEFT, port(LEFT, Ingest.APPEND), right, "l.v", "r.t"))
    first, second = (1, 10, None, 1), (1, 11, None, 2)
    alone.on_batch([((1, "x", 5), 1)], [(first, 1), (second, 1)])
    alone.on_batch([], [(second, -1)])
    assert alone.on_watermark(6, 6) == Counter({(1, "x", 5, *first): 1})
    alone.on_batch([((1, "y", 7), 1)], [(first, -1)])
    assert alone.on_watermark(8, 8) == Counter({(1, "y", 7, None, None, None, None): 1})


def test_the_hard_stream() -> None:
    """A row leaves when both watermarks have passed it; so z, the last, waits forever."""
    spec = TemporalSpec(JoinKind.LEFT, *ports(Ingest.CHANGELOG, Ingest.APPEND, timed=True), "l.v", "r.w")
    assert answers(spec) == [
        ["+ 2 b - | - - -"],
        [],
        ["+ - n 10 | - - -", "+ 1 a 10 | 1 s 10", "+ 3 c 20 | 3 u 18"],
        [],
        ["+ 1 e 30 | 1 w 25"],
    ]
