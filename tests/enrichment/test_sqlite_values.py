"""Every type that a column can have goes through SQLite and comes back as it was, and is found by its value."""

from __future__ import annotations

import datetime as dt
import sqlite3
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from dovetail.changelog.errors import InternalError
from dovetail.enrichment.stream_rows.sqlite_values import sqlite_codec
from dovetail.sql.syntax.types import INSTANT, LOCAL

INSTANTS = [dt.datetime(1900, 1, 1, 12, 30, 0, 1, dt.UTC), dt.datetime(2262, 5, 5, tzinfo=dt.UTC)]
CASES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.bool_(), [True, False]),
    (pa.int8(), [-128, 127]),
    (pa.int64(), [-(2**63), 2**63 - 1, 0]),
    (pa.uint32(), [0, 2**32 - 1]),
    (pa.uint64(), [0, 2**63 - 1, 2**63, 2**64 - 1]),
    (pa.float64(), [0.1, 1.0, -1e308, float("inf"), 5e-324]),
    (pa.float32(), [0.5, 0.10000000149011612]),
    (pa.string(), ["", "it's", "é\0x", "1"]),
    (pa.binary(), [b"", b"\0\xff"]),
    (pa.decimal128(38, 10), [Decimal("1.1000000000"), Decimal("-9999999999999999999999999999.9999999999")]),
    (pa.decimal128(5, 0), [Decimal(99999), Decimal(-1)]),
    (pa.date32(), [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)]),
    (pa.time64("us"), [dt.time(23, 59, 59, 999999), dt.time()]),
    (INSTANT, INSTANTS),
    (LOCAL, [value.replace(tzinfo=None) for value in INSTANTS]),
    (pa.timestamp("ms", "UTC"), [dt.datetime(2024, 2, 29, 1, 2, 3, 4000, dt.UTC)]),
    (pa.list_(pa.int32()), [[], [1, None, 3]]),
    (pa.map_(pa.string(), pa.int64()), [[], [("a", 1), ("b", None)]]),
    (pa.map_(pa.int32(), pa.string()), [[(1, "x")]]),
    (pa.struct([("d", pa.decimal128(6, 2)), ("b", pa.binary())]), [{"d": Decimal("1.50"), "b": b"\xff"}]),
    (pa.struct([("t", INSTANT), ("day", pa.date32())]), [{"t": INSTANTS[0], "day": dt.date(2024, 1, 1)}]),
    (pa.list_(pa.list_(pa.string())), [[["a"], None, []]]),
]


@pytest.mark.parametrize(("kind", "values"), CASES, ids=[str(kind) for kind, _ in CASES])
def test_values_come_back_and_are_found(kind: pa.DataType, values: list[Any]) -> None:
    code = sqlite_codec(kind)
    column = pa.chunked_array([pa.array([*values, None], kind), pa.array([], kind)])
    session = sqlite3.connect(":memory:")
    session.execute("CREATE TABLE t (n, x)")
    session.executemany("INSERT INTO t VALUES (?, ?)", list(enumerate(code.column(column))))
    decode = code.decode or (lambda stored: stored)
    held = [None if x is None else decode(x) for (x,) in session.execute("SELECT x FROM t ORDER BY n")]
    expected = column.to_pylist()
    assert held == expected
    assert [type(value) for value in held] == [type(value) for value in expected]
    assert pa.array(held, kind).equals(column.combine_chunks())
    for number, value in enumerate(values):
        found = session.execute("SELECT n FROM t WHERE x = ?", (code.key(value),)).fetchall()
        assert found == [(number,)]
    session.close()


def test_not_a_number_is_kept_apart_from_null() -> None:
    stored = sqlite_codec(pa.float64()).column(pa.chunked_array([[float("nan"), None]]))
    assert list(stored) == ["nan", None]


@pytest.mark.parametrize(
    ("kind", "key"),
    [
        (pa.uint32(), 1.5),
        (pa.int64(), 2**63),
        (pa.uint64(), -1),
        (pa.uint64(), 2**64),
        (pa.int32(), float("nan")),
        (pa.decimal128(5, 2), Decimal("1.001")),
        (pa.date32(), dt.datetime(2024, 1, 1, 1)),  # noqa: DTZ001
        (pa.timestamp("ms"), dt.datetime(2024, 1, 1, 0, 0, 0, 1)),  # noqa: DTZ001
    ],
)
def test_a_value_that_no_value_of_the_type_equals(kind: pa.DataType, key: Any) -> None:
    assert sqlite_codec(kind).key(key) is None


def test_values_of_the_same_family_are_found() -> None:
    assert sqlite_codec(pa.int32()).key(3.0) == 3
    assert sqlite_codec(pa.decimal128(9, 2)).key(3) == sqlite_codec(pa.decimal128(9, 2)).key(Decimal("3.0")) == "300"
    assert sqlite_codec(pa.date32()).key(dt.datetime(1970, 1, 2)) == 1  # noqa: DTZ001
    assert sqlite_codec(INSTANT).key(dt.date(1970, 1, 2)) == 86_400_000_000


def test_a_type_without_a_form_is_an_error() -> None:
    with pytest.raises(InternalError, match="no form in SQLite"):
        sqlite_codec(pa.duration("s"))
