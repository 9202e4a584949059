"""Rows that wait against their reference: random rows cut into random batches, restarts between them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.joins.aggregates.aggregation import Closing
from dovetail.joins.dataflow.ports import Ingest
from dovetail.joins.partitions.waiting import WaitingSpec
from dovetail.joins.reference.groups.waiting import ReferenceWaiting
from dovetail.joins.reference.rows import Record
from dovetail.joins.reference.side import ReferenceSide
from dovetail.joins.state.store import RunStore
from tests.joins.harness import IDS, LEFT, decoded, port, watched
from tests.joins.hosted import Hosted
from tests.tries import tries

TIMES = st.none() | st.integers(0, 12)


@settings(max_examples=tries(75))
@given(
    keys=st.sampled_from([("l.k",), ("l.v",), ()]),
    delay=st.integers(0, 3),
    shift=st.integers(-2, 0),
    batches=st.lists(
        st.tuples(
            st.lists(st.tuples(st.sampled_from([0, 1, None]), IDS, TIMES), max_size=5), st.integers(0, 6), st.booleans()
        ),
        max_size=8,
    ),
)
def test_rows_leave_when_the_watermark_has_passed_them(
    keys: tuple[str, ...],
    delay: int,
    shift: int,
    batches: list[tuple[list[tuple[int | None, str, int | None]], int, bool]],
) -> None:
    """Times rise with the batches; what is behind the watermark of the batches before is late."""
    one = replace(watched(port(LEFT, Ingest.APPEND), delay), keys=keys)
    hosted = Hosted(WaitingSpec(one, Closing("l.v", shift)))
    reference = ReferenceWaiting(ReferenceSide(Ingest.APPEND, (0,), ()), 2)
    watermark, later = None, 0
    for rows, further, restart in batches:
        later += further
        batch: list[Record] = [((key, name, None if at is None else at + later), 1) for key, name, at in rows]
        times = [row[2] for row, _ in batch if isinstance(row[2], int)]
        on_time = (
            record
            for record in batch
            if watermark is None or not isinstance(record[0][2], int) or record[0][2] >= watermark
        )
        reference.on_batch(list(on_time))
        if times:
            watermark = max(max(times) - delay, watermark if watermark is not None else max(times) - delay)
        expected = {} if watermark is None else reference.on_watermark(watermark + shift)
        assert hosted.on_batch(batch, []) == expected
        if restart:
            hosted.restart()


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.timestamp("s"), pa.timestamp("ms", "UTC"), pa.int32()])
def test_times_of_every_unit(kind: pa.DataType) -> None:
    schema = pa.schema([*list(LEFT)[:2], pa.field("l.v", kind)])
    operator = WaitingSpec(port(schema, Ingest.APPEND), Closing("l.v", 0)).open(RunStore(), "0")
    units = {"us": 1_000_000, "ms": 1_000}.get(getattr(kind, "unit", ""), 1)
    typed = pa.array([second * units for second in range(4)], pa.int64()).cast(kind)
    operator.on_batch([decoded(schema, [((1, "a", at), 1) for at in typed.to_pylist()], 0)])
    left = operator.on_watermark([2 if pa.types.is_integer(kind) else 2_000]).rows
    assert left.column("l.v").combine_chunks() == typed[:2]
