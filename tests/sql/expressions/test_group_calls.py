"""Aggregates of whole groups in DuckDB: each group by itself, whatever the order of its rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.sql.expressions.group_calls import GroupCalls
from tests.tries import tries

SCHEMA = pa.schema([("s", pa.float64()), ("a", pa.list_(pa.float64())), ("m", pa.float64())])
CALLS = GroupCalls(
    (
        ("s", 'stddev_samp("x" ORDER BY "x")'),
        ("a", 'array_agg("x" ORDER BY "y" DESC NULLS FIRST, "x")'),
        ("m", 'arg_max("x", "y" ORDER BY "x")'),
    ),
    ("x", "y"),
    SCHEMA,
)

nasty = st.none() | st.sampled_from([0.0, 1.5, -2.0, 1e308, 1e-300, float("inf"), float("-inf"), float("nan")])
rows_of = st.lists(st.tuples(st.integers(0, 3), nasty, st.sampled_from([None, 1, 2, 2**62])), max_size=12)


def called(rows: Sequence[tuple[int, float | None, int | None]], groups: int = 4) -> list[dict[str, object]]:
    table = pa.table(
        {
            "x": pa.array([x for _, x, _ in rows], pa.float64()),
            "y": pa.array([y for _, _, y in rows], pa.int64()),
        }
    )
    found = CALLS(table, np.array([group for group, _, _ in rows], np.int64), groups)
    assert found.schema == SCHEMA
    return list(found.to_pylist())


@settings(max_examples=tries(30))
@given(rows=rows_of, shuffled=st.randoms(use_true_random=False))
def test_groups_do_not_see_one_another_nor_the_order_of_rows(rows: list, shuffled) -> None:  # type: ignore[no-untyped-def, type-arg]
    together = called(rows)
    alone = [called([(0, x, y) for group, x, y in rows if group == one], 1)[0] for one in range(4)]
    assert repr(together) == repr(alone)
    other = list(rows)
    shuffled.shuffle(other)
    assert repr(called(other)) == repr(together)


def test_calls_of_constants_read_no_columns() -> None:
    constant = GroupCalls((("a", "array_agg(7)"),), (), pa.schema([("a", pa.list_(pa.int32()))]))
    none = pa.table({"x": [1.0, 2.0, 3.0]}).select([])
    found = constant(none, np.array([0, 2, 0], np.int64), 3)
    assert found.column("a").to_pylist() == [[7, 7], None, [7]]


def test_a_group_without_rows_has_no_values() -> None:
    assert called([(1, 2.0, 1)], 2)[0] == {"s": None, "a": None, "m": None}
