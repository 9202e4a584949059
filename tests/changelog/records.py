"""Kafka records as tables, and random values of every type that a column may have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

UTC_MS = pa.timestamp("ms", "UTC")
FIRST_TIMESTAMP_US = 1_700_000_000_000_000

SCALARS = (
    pa.int8(),
    pa.int32(),
    pa.int64(),
    pa.uint16(),
    pa.uint64(),
    pa.float32(),
    pa.float64(),
    pa.bool_(),
    pa.string(),
    pa.binary(),
    pa.decimal128(10, 2),
    pa.decimal128(38, 9),
    pa.timestamp("s"),
    pa.timestamp("us"),
    UTC_MS,
    pa.timestamp("ns", "UTC"),
    pa.date32(),
    pa.time64("us"),
)
NESTED = (
    pa.list_(pa.int64()),
    pa.list_(pa.string()),
    pa.list_(pa.timestamp("us")),
    pa.list_(pa.decimal128(10, 2)),
    pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))]),
    pa.struct([("x", pa.binary()), ("y", pa.date32())]),
    pa.map_(pa.string(), pa.int64()),
    pa.map_(pa.int32(), pa.list_(pa.string())),
)
TYPES = SCALARS + NESTED


def records(values: Sequence[bytes | None], keys: Sequence[bytes | None] | None = None, partition: int = 3) -> pa.Table:
    """Records of one partition, offsets from 0, a millisecond apart."""
    count = len(values)
    return pa.table(
        {
            "key": pa.array(keys or [None] * count, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "timestamp": pa.array([FIRST_TIMESTAMP_US + 1000 * n for n in range(count)], pa.timestamp("us")),
            "partition": pa.array([partition] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
        }
    )


def texts() -> st.SearchStrategy[str]:
    """With quotes, breaks and whatever else JSON must escape, but no lone surrogates."""
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def values(kind: pa.DataType) -> st.SearchStrategy[Any]:
    """Values of a type, in the form that ``pa.array`` takes; times are counts of their unit."""
    if pa.types.is_list(kind):
        return st.lists(st.none() | values(kind.value_type), max_size=3)
    if pa.types.is_map(kind):
        return st.dictionaries(values(kind.key_type), st.none() | values(kind.item_type), max_size=3).map(
            lambda members: list(members.items())
        )
    if pa.types.is_struct(kind):
        return st.fixed_dictionaries({field.name: st.none() | values(field.type) for field in kind})
    return _scalars(kind)


def _scalars(kind: pa.DataType) -> st.SearchStrategy[Any]:
    if pa.types.is_integer(kind):
        bits = kind.bit_width
        signed = pa.types.is_signed_integer(kind)
        return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else st.integers(0, 2**bits - 1)
    if pa.types.is_floating(kind):
        return st.floats(allow_nan=False, allow_infinity=False, width=kind.bit_width)
    if pa.types.is_boolean(kind):
        return st.booleans()
    if pa.types.is_decimal(kind):
        bound = 10 ** (kind.precision - kind.scale) - 1
        return st.decimals(-bound, bound, places=kind.scale, allow_nan=False, allow_infinity=False)
    if pa.types.is_timestamp(kind):
        seconds = 9_000_000_000 if kind.unit == "ns" else 100_000_000_000
        per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        return st.integers(-seconds * per_second // 2, seconds * per_second)
    if pa.types.is_date32(kind):
        return st.integers(-100_000, 1_000_000)
    if pa.types.is_time(kind):
        return st.integers(0, 86_400 * 10**6 - 1)
    return st.binary(max_size=5) if pa.types.is_binary(kind) else texts()
