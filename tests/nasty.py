"""Values that go wrong: of each type those at its edges, and those that are equal in one sense and not in another."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

FLOATS = st.sampled_from([0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 1.5, -1.5, 5e-324, 1.7e308])
INTEGERS = st.sampled_from([0, 1, -1, 2**63 - 1, -(2**63), 2**53, 2**53 + 1])
DECIMALS = st.sampled_from([Decimal(text) for text in ("0.00", "0.01", "-0.01", "99999999.99", "-99999999.99", "1.50")])
TEXTS = st.sampled_from(
    [
        "",
        "a",
        "b",
        "\0",
        "a\0",
        "a\0b",
        "é",
        "e\u0301",
        "x" * 300,
        "x" * 299 + "y",
        "prefix-of-8-and-1",
        "prefix-of-8-and-2",
    ]
)
BYTES = st.sampled_from([b"", b"\0", b"\xff", b"a" * 300, b"a" * 257])
DATES = st.sampled_from([date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(9999, 12, 31)])


def _instants(unit: timedelta) -> st.SearchStrategy[datetime]:
    edges = (-unit, timedelta(), unit, timedelta(days=1), -timedelta(days=36_000), timedelta(days=80_000))
    return st.sampled_from([_EPOCH + edge for edge in edges])


COLUMNS: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int64(): INTEGERS,
    pa.int8(): st.sampled_from([0, -1, 127, -128]),
    pa.uint64(): st.sampled_from([0, 1, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1]),
    pa.float64(): FLOATS,
    pa.float32(): st.sampled_from([0.0, -0.0, math.nan, math.inf, 1.5]),
    pa.decimal128(10, 2): DECIMALS,
    pa.string(): TEXTS,
    pa.large_string(): TEXTS,
    pa.binary(): BYTES,
    pa.date32(): DATES,
    pa.timestamp("s", "UTC"): _instants(timedelta(seconds=1)),
    pa.timestamp("ms", "UTC"): _instants(timedelta(milliseconds=1)),
    pa.timestamp("us", "UTC"): _instants(timedelta(microseconds=1)),
    pa.timestamp("ns", "UTC"): _instants(timedelta(microseconds=1)),
}
"""The types of scalars, and values of each."""

NESTED: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.list_(pa.int64()): st.lists(st.none() | INTEGERS, max_size=2),
    pa.list_(pa.float64()): st.lists(st.none() | FLOATS, max_size=2),
    pa.list_(pa.list_(pa.float64())): st.lists(st.none() | st.lists(FLOATS, max_size=1), max_size=2),
    pa.struct([("a", pa.float64()), ("b", pa.string())]): st.fixed_dictionaries(
        {"a": st.none() | FLOATS, "b": st.none() | TEXTS}
    ),
    pa.map_(pa.string(), pa.float64()): st.lists(st.tuples(TEXTS, st.none() | FLOATS), max_size=1),
}


class _NotANumber:
    """Equal to itself, and greater than all numbers."""

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return other is not self

    def __repr__(self) -> str:
        return "NaN"


NOT_A_NUMBER = _NotANumber()


def canonical(value: Any) -> Any:
    """A value that Python takes for equal where the values are, and can hash: NaN as NOT_A_NUMBER, -0.0 as 0.0."""
    if isinstance(value, float):
        return NOT_A_NUMBER if math.isnan(value) else value + 0.0
    if isinstance(value, list | tuple):
        return tuple(canonical(one) for one in value)
    if isinstance(value, dict):
        return tuple((name, canonical(one)) for name, one in value.items())
    return value
