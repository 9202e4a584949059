"""Where the watermarks of an operator's inputs stand, and which rows are late by them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.changelog.changes import DELTA
from dovetail.joins.dataflow.ports import Ingest, Port, Watermark
from dovetail.joins.inputs.watermarks import UNSHOWN, PartitionTime, Watermarks, next_on, output_watermark

SCHEMA = pa.schema([("t", pa.timestamp("us"))])
LEFT, RIGHT = 4, 5


def port(delay_ms: int | None, **options: bool) -> Port:
    watermark = None if delay_ms is None else Watermark("t", delay_ms, **options)
    return Port(SCHEMA, (), Ingest.APPEND, watermark=watermark)


def two(left: Port, right: Port, scalars: dict[str, int] | None = None) -> Watermarks:
    return Watermarks((LEFT, RIGHT), (left, right), {} if scalars is None else scalars)


def moved(watermarks: Watermarks, *partition_times: tuple[int, int, int | None]) -> tuple[int | None, ...]:
    watermarks.advance([PartitionTime(*partition_time) for partition_time in partition_times])
    return watermarks.values


def test_an_input_stands_at_the_least_of_its_partitions_less_the_delay() -> None:
    watermarks = two(port(5), port(0))

    assert watermarks.values == (None, None)
    assert moved(watermarks, (LEFT, 0, 40), (LEFT, 1, 20)) == (15, None)
    assert moved(watermarks, (LEFT, 1, 60), (RIGHT, 0, 7)) == (35, 7)


def test_the_partition_that_holds_it_back() -> None:
    watermarks = two(port(5), port(None))
    shown = [((LEFT, 0, 40), 0), ((LEFT, 1, 20), 1), ((LEFT, 1, None), 0), ((LEFT, 2, UNSHOWN), 2)]
    for partition_time, partition in shown:
        moved(watermarks, partition_time)
        assert watermarks.held_by == (partition, None)


def test_it_never_moves_back() -> None:
    """Neither by an older time nor by a partition that begins later, or further back."""
    watermarks = two(port(0), port(None))

    assert moved(watermarks, (LEFT, 0, 40)) == (40, None)
    assert moved(watermarks, (LEFT, 0, 30)) == (40, None)
    assert moved(watermarks, (LEFT, 1, 10)) == (40, None)
    assert moved(watermarks, (LEFT, 0, 90), (LEFT, 1, 50)) == (50, None)


def test_an_idle_partition_holds_its_input_back_no_more() -> None:
    watermarks = two(port(0), port(0))
    moved(watermarks, (LEFT, 0, 40), (LEFT, 1, 20), (RIGHT, 0, 1))

    assert moved(watermarks, (LEFT, 1, None)) == (40, 1)
    assert moved(watermarks, (LEFT, 0, 50)) == (50, 1)
    # It comes back, behind: what the watermark has passed is passed.
    assert moved(watermarks, (LEFT, 1, 30), (LEFT, 0, 60)) == (50, 1)
    assert moved(watermarks, (LEFT, 1, 55)) == (55, 1)


def test_an_idle_input_stands_where_the_other_one_does() -> None:
    watermarks = two(port(0), port(5))
    moved(watermarks, (LEFT, 0, 40), (RIGHT, 0, 105))

    assert moved(watermarks, (LEFT, 0, None)) == (100, 100)
    assert moved(watermarks, (RIGHT, 0, 205)) == (200, 200)
    assert moved(watermarks, (LEFT, 0, 300), (RIGHT, 0, 206)) == (300, 201)


def test_an_input_that_never_gave_a_row_can_be_idle_too() -> None:
    watermarks = two(port(0, shared=True), port(0, shared=True))

    assert moved(watermarks, (LEFT, 0, 40)) == (None, None)
    assert moved(watermarks, (RIGHT, 0, None), (RIGHT, 1, None)) == (40, 40)


@pytest.mark.parametrize("order", [(LEFT, RIGHT), (RIGHT, LEFT)])
@pytest.mark.parametrize("shared", [False, True])
def test_where_all_are_idle_each_stands_where_the_furthest_came(order: tuple[int, int], shared: bool) -> None:
    watermarks = two(port(0, shared=shared), port(0, shared=shared))
    moved(watermarks, (LEFT, 0, 40), (LEFT, 1, 90), (RIGHT, 0, 70))

    for edge in order:
        moved(watermarks, (edge, 0, None), (edge, 1, None))

    assert watermarks.values == (90, 90)


def test_a_shared_watermark_is_the_least_of_all_inputs() -> None:
    watermarks = two(port(10, shared=True), port(0, shared=True))

    assert moved(watermarks, (LEFT, 0, 50)) == (None, None)
    assert moved(watermarks, (RIGHT, 0, 70)) == (40, 40)
    assert moved(watermarks, (LEFT, 0, 500)) == (70, 70)


def test_beside_a_shared_one_an_input_of_its_own_stands_where_it_is() -> None:
    watermarks = two(port(0, shared=True), port(0))

    assert moved(watermarks, (LEFT, 0, 50), (RIGHT, 0, 20)) == (20, 20)
    assert moved(watermarks, (RIGHT, 0, 90)) == (50, 90)


def test_partition_times_of_other_edges_are_passed_over() -> None:
    assert moved(two(port(0), port(0)), (LEFT + 10, 0, 5)) == (None, None)


PartitionTimes = st.lists(
    st.tuples(st.sampled_from([LEFT, RIGHT]), st.integers(0, 2), st.none() | st.integers(0, 9)), max_size=12
)


@given(partition_times=PartitionTimes, shared=st.booleans(), cuts=st.sets(st.integers(0, 12)))
def test_a_restart_changes_nothing_and_no_watermark_moves_back(
    partition_times: list[tuple[int, int, int | None]], shared: bool, cuts: set[int]
) -> None:
    ports = (port(1, shared=shared), port(0, shared=shared))
    scalars: dict[str, int] = {}
    whole, cut = two(*ports), two(*ports, scalars)
    before: tuple[int | None, ...] = (None, None)
    for number, partition_time in enumerate(partition_times):
        if number in cuts:
            cut = two(*ports, scalars)
        now = moved(whole, partition_time)
        assert moved(cut, partition_time) == now
        assert all(old is None or (new is not None and new >= old) for old, new in zip(before, now, strict=True))
        before = now


def rows(times_us: Iterable[int | None], deltas: Iterable[int]) -> pa.Table:
    times = pa.array(times_us, pa.int64()).cast(SCHEMA.field("t").type)
    return pa.table({"t": times, DELTA: pa.array(deltas, pa.int64())})


def test_insertions_behind_the_watermark_are_late() -> None:
    watermarks = two(port(1), port(None))
    given_rows = rows([0, 1_999, 2_000, None, 1_000], [1, 1, 1, 1, -1])

    assert not watermarks.late(0, given_rows).any()
    moved(watermarks, (LEFT, 0, 3))
    assert watermarks.late(0, given_rows).tolist() == [True, True, False, False, False]
    assert not watermarks.late(1, given_rows).any()


def test_a_watermark_may_only_tell_the_time() -> None:
    watermarks = two(port(1, drops_late=False), port(None))

    assert moved(watermarks, (LEFT, 0, 3)) == (2, None)
    assert not watermarks.late(0, rows([0], [1])).any()


def test_whole_numbers_stand_for_themselves() -> None:
    schema = pa.schema([("t", pa.uint8())])
    watermarks = two(replace(port(5), schema=schema), port(None))
    moved(watermarks, (LEFT, 0, 3))
    numbers = pa.table({"t": pa.array([0, 7], pa.uint8()), DELTA: pa.array(np.ones(2, np.int64))})

    assert not watermarks.late(0, numbers).any()
    moved(watermarks, (LEFT, 0, 12))
    assert watermarks.late(0, numbers).tolist() == [True, False]


def test_a_partition_that_is_known_and_has_shown_nothing_holds_back_where_others_are_told() -> None:
    scalars: dict[str, int] = {}
    watermarks = two(port(0), port(0), scalars)

    assert moved(watermarks, (LEFT, 0, 40), (LEFT, 1, UNSHOWN), (RIGHT, 0, 7)) == (None, 7)
    assert moved(two(port(0), port(0), scalars), (LEFT, 1, 30)) == (30, 7)
    assert moved(watermarks, (LEFT, 1, 30), (LEFT, 1, UNSHOWN), (LEFT, 0, UNSHOWN)) == (30, 7)
    # Nor is one that has fallen silent awake because it is known to be there.
    assert moved(watermarks, (LEFT, 1, None), (LEFT, 1, UNSHOWN)) == (40, 7)


def test_what_leaves_an_operator_has_the_least_of_the_watermarks_of_its_inputs() -> None:
    assert output_watermark((0, -10), (40, 45)) == 35
    assert output_watermark((0, -10), (40, None)) is None
    assert output_watermark((3,), (40,)) == 43


@given(st.integers(1, 20), st.integers(0, 19), st.integers(-100, 100))
def test_on_a_grid_the_next_time_on_it_says_the_same(step: int, first: int, watermark: int) -> None:
    times = [first + step * number for number in range(-200, 200)]
    moved = next_on((step, first), watermark)
    assert moved in times
    assert [time < moved for time in times] == [time < watermark for time in times]
