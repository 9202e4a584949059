"""The records of an output."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dovetail.changelog.changes import DELTA
from dovetail.changelog.encode import Encoded, encode
from dovetail.changelog.encodings.message_sizes import message_size
from tests.changelog.records import UTC_MS

KEY = (("k", "k"),)


def changes(*rows: tuple[int | None, str, int]) -> pa.Table:
    keys, texts, deltas = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table(
        [pa.array(keys, pa.int64()), pa.array(texts, pa.string()), pa.array(deltas, pa.int64())], ["k", "v", DELTA]
    )


def value_of(kind: pa.DataType, value: Any) -> bytes:
    rows = pa.table([pa.array([value], kind), pa.array([1], pa.int64())], ["v", DELTA])
    (text,) = encode(rows, ("v",), (), updating=False).values
    assert text is not None
    return text


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (pa.int64(), 2**63 - 1, b'{"v":9223372036854775807}'),
        (pa.float64(), 0.1, b'{"v":0.1}'),
        (pa.float64(), math.nan, b'{"v":null}'),
        (pa.float64(), -math.inf, b'{"v":null}'),
        (pa.decimal128(10, 2), Decimal("12.3"), b'{"v":12.30}'),
        (pa.decimal128(10, 2), None, b'{"v":null}'),
        (pa.string(), 'é"\\\n', '{"v":"é\\"\\\\\\n"}'.encode()),
        (UTC_MS, dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC), b'{"v":"2026-01-31 12:00:00.000"}'),
        (pa.timestamp("s"), dt.datetime(2026, 1, 31, 12), b'{"v":"2026-01-31 12:00:00"}'),  # noqa: DTZ001
        (pa.timestamp("us"), dt.datetime(1969, 12, 31, 23, 59, 59, 5), b'{"v":"1969-12-31 23:59:59.000005"}'),  # noqa: DTZ001
        (pa.date32(), dt.date(2026, 1, 31), b'{"v":"2026-01-31"}'),
        (pa.binary(), b"\x00\x01", b'{"v":"AAE="}'),
        (pa.list_(pa.int64()), [1, None], b'{"v":[1,null]}'),
        (pa.map_(pa.string(), pa.int64()), [("a", 1)], b'{"v":{"a":1}}'),
        (pa.bool_(), True, b'{"v":true}'),
    ],
    ids=str,
)
def test_values(kind: pa.DataType, value: Any, expected: bytes) -> None:
    assert value_of(kind, value) == expected


def test_members_stand_in_the_order_of_the_columns_and_the_delta_last() -> None:
    rows = pa.table(
        {"d": pa.array([Decimal("1.5")]), "k": [1], "h": ["x"], "v": ["a"], DELTA: pa.array([1], pa.int64())}
    )
    encoded = encode(rows, ("v", "d", "k"), (("h", "hidden"), ("k", "id")), updating=True)
    assert encoded.values == [b'{"v":"a","d":1.5,"k":1,"_tp_delta":1}']
    assert encoded.keys == [b'{"hidden":"x","id":1}']


def test_a_changelog_has_a_record_per_row_and_count_retractions_first() -> None:
    encoded = encode(changes((1, "new", 1), (2, "x", 2), (1, "old", -1)), ("k", "v"), KEY, updating=True)
    assert encoded.values == [
        b'{"k":1,"v":"old","_tp_delta":-1}',
        b'{"k":1,"v":"new","_tp_delta":1}',
        b'{"k":2,"v":"x","_tp_delta":1}',
        b'{"k":2,"v":"x","_tp_delta":1}',
    ]
    assert encoded.keys == [b'{"k":1}', b'{"k":1}', b'{"k":2}', b'{"k":2}']


def test_without_key_columns_records_have_no_key() -> None:
    encoded = encode(changes((1, "a", 1), (2, "b", -1)), ("v",), (), updating=True)
    assert encoded.keys == [None, None]
    assert encoded.values == [b'{"v":"b","_tp_delta":-1}', b'{"v":"a","_tp_delta":1}']


def test_an_upsert_output_has_one_record_for_each_key() -> None:
    rows = changes((1, "old", -1), (1, "new", 1), (2, "gone", -1), (3, "came", 1), (4, "came and went", 1))
    rows = pa.concat_tables([rows, changes((4, "came and went", -1))])
    encoded = encode(rows, ("k", "v"), KEY, updating=True, format="upsert")
    assert dict(zip(encoded.keys, encoded.values, strict=True)) == {
        b'{"k":1}': b'{"k":1,"v":"new"}',
        b'{"k":2}': None,
        b'{"k":3}': b'{"k":3,"v":"came"}',
    }


@pytest.mark.parametrize("form", ["changelog", "upsert"])
def test_no_rows_no_records(form: str) -> None:
    assert len(encode(changes(), ("k", "v"), KEY, updating=True, format=form)) == 0


@pytest.mark.parametrize(
    ("key", "value", "size"), [(b"key", b"value", 8), (None, b"value", 5), (b"key", None, 3), (None, None, 0)]
)
def test_a_message_is_as_large_as_its_key_and_its_value(key: bytes | None, value: bytes | None, size: int) -> None:
    assert message_size(key, value) == size
    assert Encoded.of([b"before", key], [None, value]).sizes().tolist() == [6, size]


def test_records_without_keys_have_the_sizes_of_their_values() -> None:
    records = Encoded(None, pa.array([b"value", None, b""], pa.large_binary()))
    assert records.sizes().tolist() == [5, 0, 0]
    assert records.slice(1, 2).keys == [None, None]
    assert records.take(np.array([2, 0])).values == [b"", b"value"]
