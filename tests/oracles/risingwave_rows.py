# ruff: noqa: E501, DTZ001 - rows are read along a line; a TIMESTAMP has no zone
"""The rows that expressions of RisingWave are asked about: NULLs and the edges of every type."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal

import pyarrow as pa

NAN, INF = float("nan"), float("inf")

_LOCAL = pa.timestamp("us")
_INSTANT = pa.timestamp("us", tz="UTC")

COLUMNS: Mapping[str, tuple[str, pa.DataType, list[object]]] = {
    "id": ("integer", pa.int32(), list(range(12))),
    "i2": ("smallint", pa.int16(), [0, 1, -1, 32767, -32768, None, 7, -7, 100, 12, None, 3]),
    "i4": ("integer", pa.int32(), [0, 1, -1, 2147483647, -2147483648, None, 10, -3, 255, 1000, 42, None]),
    "k4": ("integer", pa.int32(), [3, 0, 2, -2, 7, 5, None, 4, 1, 6, -1, 10]),
    "i8": ("bigint", pa.int64(), [0, 1, -1, 9223372036854775807, -9223372036854775808, None, 10, -3, 5000000000, 7, 42, 2147483648]),
    "r": ("real", pa.float32(), [0.0, 1.5, -2.5, 1e10, -0.0, None, 3.25, 1e-6, 16777216.0, 0.1, NAN, 123456789.0]),
    "d": ("double precision", pa.float64(), [0.0, 1.5, -2.5, 1e15, -0.0, None, 0.5, 2.5, 1e-7, 123456.789, NAN, INF]),
    "e": ("double precision", pa.float64(), [1.0, 2.0, 0.25, 0.0, -1.0, 3.5, None, 10.0, 0.1, 100.0, 7.0, -0.5]),
    "n": ("numeric(12, 2)", pa.decimal128(12, 2), [Decimal(x) if x else None for x in ("0.00", "1.50", "-1.50", "9999999999.99", "-0.01", None, "2.50", "3.05", "100.00", "-7.25", "0.50", "12.34")]),
    "m": ("numeric(18, 6)", pa.decimal128(18, 6), [Decimal(x) if x else None for x in ("1.000000", "0.000001", "3.141593", "-2.718282", "0.000000", "10.500000", None, "-0.500000", "123456.789012", "7.000000", "2.500000", "1.250000")]),
    "s": ("text", pa.string(), ["", "a", "Hello World", "héllo wörld", "日本語", None, "  blanks ", "a,b,,c", "it's \"q\" \\ back", "123", "foo bar-baz", "aXbXc"]),
    "t": ("text", pa.string(), ["a", "", "o", "l", "本", "x", None, ",", "q", "2", "ba", "X"]),
    "w": ("text", pa.string(), ["12", "-7", " 42 ", "3.5", "1e3", None, "abc", "", "2147483648", "true", "10x", "1_0"]),
    "b": ("boolean", pa.bool_(), [True, False, None, True, False, True, False, None, True, False, True, None]),
    "c": ("boolean", pa.bool_(), [True, True, True, False, False, False, None, None, None, True, False, True]),
    "dt": ("date", pa.date32(), [date(2024, 2, 29), date(1970, 1, 1), date(1969, 12, 31), date(2000, 1, 1), date(1, 1, 1), None, date(2023, 12, 31), date(2021, 1, 3), date(4999, 12, 31), date(2020, 12, 28), date(1900, 3, 1), date(2024, 5, 5)]),
    "ts": ("timestamp", _LOCAL, [datetime(2024, 2, 29, 23, 59, 59, 999999), datetime(1970, 1, 1), datetime(1969, 12, 31, 12, 30, 0, 500000), datetime(2000, 1, 1), datetime(1, 1, 1), None, datetime(2023, 12, 31, 0, 0, 1), datetime(2021, 1, 3, 13, 5, 7, 120000), datetime(4999, 12, 31, 23, 0), datetime(2020, 12, 28, 6, 0, 0, 1), datetime(1900, 3, 1, 12, 0), datetime(2024, 5, 5, 5, 5, 5)]),
    "tz": ("timestamptz", _INSTANT, [datetime(2024, 3, 10, 7, 30, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC), datetime(2023, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(2000, 1, 1, tzinfo=UTC), datetime(1900, 1, 1, tzinfo=UTC), None, datetime(2024, 11, 3, 5, 30, tzinfo=UTC), datetime(2021, 6, 15, 12, 0, 0, 250000, tzinfo=UTC), datetime(2038, 1, 19, 3, 14, 8, tzinfo=UTC), datetime(1969, 7, 20, 20, 17, 40, tzinfo=UTC), None, datetime(2024, 5, 5, 5, 5, 5, tzinfo=UTC)]),
    "tm": ("time", pa.time64("us"), [time(0, 0), time(23, 59, 59, 999999), time(12, 30), None, time(6, 5, 4, 300000), time(1, 2, 3), time(12, 0), time(18, 0), time(9, 9, 9), None, time(4, 0), time(20, 20)]),
    "by": ("bytea", pa.binary(), [b"", b"a", b"\x00\xff", "é".encode(), None, b"hello", b"abc", b"\\", b"1", b"\x01\x02\x03", b"Z", b"xyz"]),
    "ai": ("integer[]", pa.list_(pa.int32()), [[], [1], [1, 2, 3], [3, None, 1, 3], None, [2147483647], [0, 0], [None], [5, 4, 3, 2, 1], [10, 20], [-1], [7, 1]]),
    "ad": ("double precision[]", pa.list_(pa.float64()), [[], [1.5], [0.1, 2.0], None, [None, 3.0], [1e15], [-0.5], [2.5, 2.5], [100.0], [1.0, 2.0, 3.0], [0.0], [7.0]]),
    "at": ("text[]", pa.list_(pa.string()), [[], ["a"], ["a", "b", "a"], [None, "x"], None, ["with space", "q\"uote"], [""], ["null", "NULL"], ["{", "b,c"], ["héllo"], ["z", "y"], ["1", "2"]]),
    "j": ("jsonb", pa.string(), ['{"a": 1, "b": {"c": [1, 2]}}', "[1, 2, 3]", '"text"', "5", "null", None, '{"a": "x", "b": null}', '[{"a": 1}, "b", null]', "true", "{}", "[]", '{"a": [1, "b"], "a/b": 2}']),
    "iv": ("interval", pa.string(), ["1 day", "24:00:00", "30 days", "1 mon", None, "-1 days +02:03:04.5", "1 year 2 mons 3 days 04:05:06", "00:00:00", "-1 years -2 mons +3 days -04:05:06.789", "00:00:00.000001", "100:00:00", "2 mons -3 days"]),
}  # fmt: skip
"""Column -> its type there, its type here, its values."""
FORMS = {"iv": "interval"}
"""The form of the texts of columns."""

TABLE = pa.table(
    [pa.array(values, kind) for _, kind, values in COLUMNS.values()],
    names=list(COLUMNS),
)
