"""What a frame holds is what the stream holds: the same values, or an error with the row."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.changelog.errors import SqlError
from dovetail.services.session.frames.fitted_columns import fitted

DECIMAL = pa.decimal128(10, 2)
MS = pa.timestamp("ms", tz="UTC")


def fit(values: list[Any], kind: pa.DataType, given_as: pa.DataType | None = None) -> list[Any]:
    found: list[Any] = fitted(pa.chunked_array([pa.array(values, given_as)]), kind, "a").to_pylist()
    return found


FLOATS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(10**9), 10**9).map(lambda n: n / 8),
    st.tuples(st.integers(-(10**15), 10**15), st.integers(0, 9)).map(
        lambda one: float(Decimal(one[0]).scaleb(-one[1]))
    ),
)


@given(st.lists(st.none() | FLOATS, max_size=20), st.integers(0, 9))
def test_floats_are_decimals_by_their_digits_or_to_the_last_bit(values: list[float | None], scale: int) -> None:
    def meant(value: float) -> Fraction:
        shortest = abs(value) * 10.0**scale < 2**53 and round(value, scale) == value
        return Fraction(Decimal(repr(value))) if shortest else Fraction(value)

    def misfit(value: float | None) -> bool:
        scaled = meant(value or 0.0) * 10**scale
        return bool(scaled.denominator != 1 or abs(scaled) >= 10**30)

    kind = pa.decimal128(30, scale)
    rows = [row for row, value in enumerate(values) if misfit(value)]
    if rows:
        with pytest.raises(SqlError) as refused:
            fit(values, kind, pa.float64())
        assert refused.value.where == f"column a, row {rows[0]} (the first is 0)"
    else:
        found = fit(values, kind, pa.float64())
        assert [one and Fraction(one) for one in found] == [value and meant(value) for value in values]


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=20))
def test_integers_are_decimals_where_they_have_room(values: list[int | None]) -> None:
    rows = [row for row, value in enumerate(values) if abs(value or 0) >= 10**8]
    if rows:
        with pytest.raises(SqlError) as refused:
            fit(values, DECIMAL, pa.int64())
        assert f"row {rows[0]} " in refused.value.where
    else:
        assert fit(values, DECIMAL, pa.int64()) == values


@pytest.mark.parametrize(
    ("values", "given_as", "kind", "fitting"),
    [
        (["3.25", None], pa.large_string(), DECIMAL, [Decimal("3.25"), None]),
        ([Decimal("1.25")], pa.decimal256(50, 2), DECIMAL, [Decimal("1.25")]),
        ([2**64 - 1], pa.uint64(), pa.decimal128(20, 0), [Decimal(2**64 - 1)]),
        ([None, None], pa.null(), pa.list_(pa.int64()), [None, None]),
        (["x", "y"], pa.dictionary(pa.int8(), pa.large_string()), pa.string(), ["x", "y"]),
        (["2026-01-01 00:00:00", None], pa.string(), MS, [datetime(2026, 1, 1, tzinfo=UTC), None]),
        (["2026-01-01 01:00:00+01:00"], pa.string_view(), MS, [datetime(2026, 1, 1, tzinfo=UTC)]),
        ([1.0, None], pa.float64(), pa.int64(), [1, None]),
        ([1.5, float("inf"), float("-inf")], pa.float64(), pa.float32(), [1.5, float("inf"), float("-inf")]),
        ([{"y": "q", "x": 1}], None, pa.struct([("x", pa.int32()), ("y", pa.string())]), [{"x": 1, "y": "q"}]),
    ],
)
def test_the_same_value_in_another_type_is_taken(
    values: list[Any], given_as: pa.DataType | None, kind: pa.DataType, fitting: list[Any]
) -> None:
    assert fit(values, kind, given_as) == fitting


@pytest.mark.parametrize(
    ("values", "given_as", "kind", "where", "words"),
    [
        ([9.99, 0.125], pa.float32(), DECIMAL, "row 1 ", "would be rounded"),
        ([9.99, 0.1 + 0.2], None, DECIMAL, "row 1 ", "would be rounded"),
        ([0.5, float("nan")], None, DECIMAL, "row 1 ", "nan"),
        ([Decimal("1.255")], None, DECIMAL, "row 0 ", "data loss"),
        (["1", "x"], None, pa.int64(), "row 1 ", "x does not fit column a int64"),
        ([1, 2**63], pa.uint64(), pa.int64(), "row 1 ", "not in range"),
        ([1.0, 1e300], None, pa.float32(), "row 1 ", "larger than any float32"),
        ([2**53, 2**53 + 1], None, pa.float64(), "row 1 ", "9007199254740993"),
        ([1, 1_000_001], pa.timestamp("ns"), MS, "row 0 ", "lose data"),
        (["2026-01-01", "soon"], None, MS, "row 1 ", "soon"),
        ([b"a", b"\xff"], None, pa.string(), "row 1 ", "UTF8"),
        ([timedelta(1)], None, pa.int64(), "column a", "duration"),
        ([time(1)], None, pa.int64(), "column a", "a column of time "),
        ([date(2026, 1, 1)], None, pa.int32(), "column a", "a column of date "),
        ([datetime(2026, 1, 1, tzinfo=UTC)], None, pa.int64(), "column a", "datetime64(6)"),
        ([{"x": 1, "z": 2}], None, pa.struct([("x", pa.int64())]), "column a", 'a field "z"'),
        ([[{"x": 1, "z": 2}]], None, pa.list_(pa.struct([("x", pa.int64())])), "column a", 'a field "z"'),
    ],
)
def test_what_would_be_another_value_is_refused_with_its_row(
    values: list[Any], given_as: pa.DataType | None, kind: pa.DataType, where: str, words: str
) -> None:
    with pytest.raises(SqlError) as refused:
        fit(values, kind, given_as)
    assert where in refused.value.where
    assert words in str(refused.value)
    assert refused.value.fix


@pytest.mark.parametrize("bad", [0, 1, 499, 998, 999])
def test_the_row_is_found_across_chunks(bad: int) -> None:
    values = ["1"] * 1000
    values[bad] = "x"
    column = pa.chunked_array([values[:1], values[1:500], [], values[500:]], pa.string())
    with pytest.raises(SqlError) as refused:
        fitted(column, pa.int64(), "a")
    assert refused.value.where == f"column a, row {bad} (the first is 0)"
