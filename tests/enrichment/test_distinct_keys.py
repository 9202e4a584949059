"""The distinct keys of a batch."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.enrichment.lookup_join.distinct_keys import distinct_keys


@given(st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 3)), st.sampled_from([None, "a", "b"]))))
def test_every_row_finds_its_key(rows: list[tuple[int | None, str | None]]) -> None:
    table = pa.table(
        {"n": pa.array([n for n, _ in rows], pa.int64()), "t": pa.array([t for _, t in rows], pa.string())}
    )
    keys = distinct_keys(table, ("n", "t"), (None, None))
    found = [keys.keys[code] if code < len(keys.keys) else None for code in keys.codes.tolist()]
    assert found == [None if None in row else row for row in rows]
    assert len(set(keys.keys)) == len(keys.keys) == len({row for row in rows if None not in row})


def test_a_key_of_one_column_is_a_scalar_and_chunks_do_not_matter() -> None:
    column = pa.chunked_array([["b", None], ["a", "b"], []], pa.string())
    keys = distinct_keys(pa.table({"t": column}), ("t",), (pa.string(),))
    assert keys.keys == ["b", "a"]
    assert keys.codes.tolist() == [0, 2, 1, 0]


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (pa.array([5, -1, 2**40, 5]), pa.uint32(), [5, None, None, 5]),
        (pa.array([1.0, 2.5, float("nan"), None]), pa.int32(), [1, None, None, None]),
        (pa.array([10**12, 7]), pa.decimal128(5, 2), [None, Decimal("7.00")]),
        (pa.array([Decimal("1.25"), Decimal("1.50")]), pa.decimal128(10, 1), [None, Decimal("1.5")]),
    ],
)
def test_a_value_that_the_type_cannot_hold_is_no_key(
    values: pa.Array, kind: pa.DataType, expected: list[object]
) -> None:
    keys = distinct_keys(pa.table({"x": values}), ("x",), (kind,))
    assert [keys.keys[code] if code < len(keys.keys) else None for code in keys.codes.tolist()] == expected


def test_no_rows_have_no_keys() -> None:
    empty = pa.table({"a": pa.array([], pa.string()), "b": pa.array([], pa.int64())})
    for names in (("a",), ("a", "b")):
        keys = distinct_keys(empty, names, (None,) * len(names))
        assert keys.keys == []
        assert keys.codes.tolist() == []
