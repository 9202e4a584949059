"""Late rows beside the rows of their input."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.changelog.schema import Column, StreamSchema
from dovetail.joins.dataflow.graph import TopicScan
from dovetail.services.session.verification.late_columns import row_columns, without_late
from dovetail.sql.plan.window_shape import WindowShape
from dovetail.sql.transforms.window_step import WindowStep

ROWS = st.lists(st.tuples(st.none() | st.integers(0, 2), st.none() | st.sampled_from("ab")), max_size=12)
BOUNDS = ("window_start", "window_end")


def table(rows: list[tuple[int | None, str | None]]) -> pa.Table:
    return pa.table(
        {
            "k": pa.array([k for k, _ in rows], pa.int64()),
            "unread": pa.array(range(len(rows)), pa.int64()),
            "s": pa.array([s for _, s in rows], pa.string()),
        }
    )


@given(ROWS, ROWS)
def test_as_many_rows_go_as_are_equal_to_late_ones(
    rows: list[tuple[int | None, str | None]], late: list[tuple[int | None, str | None]]
) -> None:
    left = without_late(table(rows), table(late).select(["k", "s"]))
    kept = zip(left.column("k").to_pylist(), left.column("s").to_pylist(), strict=True)
    assert Counter(kept) == Counter(rows) - Counter(late)
    assert left.column("unread").to_pylist() == sorted(left.column("unread").to_pylist())


def scan(*windows: WindowStep) -> TopicScan:
    schema = StreamSchema("s", (Column("k", pa.int64()), Column("at", pa.timestamp("ms"))))
    return TopicScan(schema, "s", ("k", "at"), windows, 0)


def window(size_ms: int, slide_ms: int) -> WindowStep:
    return WindowStep("at", WindowShape(size_ms, slide_ms), *BOUNDS)


@pytest.mark.parametrize(
    ("windows", "members", "columns"),
    [
        ([], [("k", "at"), ("k", "at")], ("k", "at")),
        ([], [("k",), ("k", "at")], None),
        ([], [("k", "made")], None),
        ([], [("k", *BOUNDS)], None),
        ([], [()], None),
        ([window(10, 10)], [("k", *BOUNDS)], ("k",)),
        ([window(10, 10)], [BOUNDS], None),
        ([window(10, 5)], [("k", *BOUNDS)], None),
    ],
)
def test_the_columns_that_tell_a_row_of_the_input(
    windows: list[WindowStep], members: list[tuple[str, ...]], columns: tuple[str, ...] | None
) -> None:
    assert row_columns(scan(*windows), members) == columns
