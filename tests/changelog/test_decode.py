"""The forms of record that are read, and what is said of those that are not."""

from __future__ import annotations

import datetime as dt
import pickle
from typing import Any

import pyarrow as pa
import pytest

from dovetail.changelog.changes import DELTA, DELTA_TYPE
from dovetail.changelog.decode import REJECTED, Decoder
from dovetail.changelog.errors import SqlError
from dovetail.changelog.schema import ARRIVAL, Column, Kind, StreamSchema
from tests.changelog.records import FIRST_TIMESTAMP_US, UTC_MS, records

COLUMNS = (Column("k", pa.int64()), Column("v", pa.string()), Column("n", pa.int32(), default="7"))
APPEND = StreamSchema("s", COLUMNS)
UPSERT = StreamSchema("s", COLUMNS, Kind.UPSERT, ("k",))
CHANGELOG = StreamSchema("s", COLUMNS, Kind.CHANGELOG)
CHANGELOG_KV = StreamSchema("s", COLUMNS, Kind.CHANGELOG_KV, ("k",))


def rows(schema: StreamSchema, *pairs: tuple[bytes | None, bytes | None]) -> list[tuple[Any, ...]]:
    """(k, v, n, delta) of records (key, value), none of which is rejected."""
    batch = records([value for _, value in pairs], [key for key, _ in pairs])
    decoded = Decoder(schema, ("k", "v", "n")).decode(batch)
    assert decoded.rejected.to_pylist() == []
    return [(row["k"], row["v"], row["n"], row[DELTA]) for row in decoded.rows.to_pylist()]


def reason(schema: StreamSchema, value: bytes | None, key: bytes | None = None) -> str:
    """Why the second of three records is rejected, the other two of which are good."""
    good = (b'{"k":1}', b'{"k":1,"v":"x","_tp_delta":1}')
    decoded = Decoder(schema, ("k", "v", "n")).decode(records([good[1], value, good[1]], [good[0], key, good[0]]))
    assert decoded.rows["k"].to_pylist() == [1, 1]
    (rejected,) = decoded.rejected.to_pylist()
    assert (rejected["partition"], rejected["offset"], rejected["key"], rejected["value"]) == (3, 1, key, value)
    return str(rejected["reason"])


def one_value(kind: pa.DataType, text: str) -> Any:
    """The value of a column of a type for a JSON text."""
    decoded = Decoder(StreamSchema("s", (Column("v", kind),)), ("v",)).decode(records([b'{"v":%s}' % text.encode()]))
    assert decoded.rejected.to_pylist() == []
    return decoded.rows["v"][0].as_py()


def test_members_are_read_by_name_unknown_ones_ignored_missing_ones_default_or_null() -> None:
    value = b'{"extra":{"a":[1]},"n":3,"k":1}'
    assert rows(APPEND, (None, value), (None, b"{}"), (None, b'{"n":null,"v":"x"}')) == [
        (1, None, 3, 1),
        (None, None, 7, 1),
        (None, "x", None, 1),
    ]


@pytest.mark.parametrize("columns", [("k", "v", "n"), ("v",), ("n",), ()])
@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b'{"K":1,"V":"x"}', "none of its members is a column: K, V; written as k, v they would be"),
        (b'{"id":1}', "none of its members is a column: id"),
        (b'{"a":{"b":[null,"x"]}}', "none of its members is a column: a"),
        (b'{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6}', "none of its members is a column: a, b, c, d, e"),
    ],
)
def test_an_object_none_of_whose_members_is_a_column_is_no_row(
    value: bytes, why: str, columns: tuple[str, ...]
) -> None:
    known = (
        b"{}",
        b'{"v":null}',
        b'{"a":{"k":1}}',
        b'{"x":1,"\\u006b":null}',
        b'{"_tp_time":"2026-01-01"}',
        b'{"n":1}',
    )
    decoded = Decoder(APPEND, columns).decode(records([*known, value, *known]))
    assert decoded.rows.num_rows == 2 * len(known)
    assert [(one["value"], one["reason"]) for one in decoded.rejected.to_pylist()] == [(value, why)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('{"b":1}', (1, "none")),
        ('{"a":2}', (2, "none")),
        ('{"b":1,"a":2}', (1, "none")),
        ('{"b":null,"a":2}', (None, "none")),
        ('{"older":3}', (3, "none")),
        ('{"a":null,"older":3}', (3, "none")),
        ('{"title":"x"}', (None, "x")),
        ('{"title":null}', (None, None)),
        ('{"name":"y","title":"x"}', (None, "y")),
        ('{"\\u0062":null,"a":2}', (None, "none")),
    ],
)
def test_a_renamed_column_is_read_under_its_former_names_too(value: str, expected: tuple[object, object]) -> None:
    columns = (
        Column("b", pa.int32(), former=("a", "older")),
        Column("name", pa.string(), default="'none'", former=("title",)),
    )
    decoder = Decoder(StreamSchema("s", columns), ("b", "name"))
    batch = records([value.encode(), b'{"b":7,"name":"z"}'])
    for decoded in (decoder.decode(batch), decoder.decode_singly(batch)):
        [row, other] = decoded.rows.to_pylist()
        assert (row["b"], row["name"]) == expected
        assert (other["b"], other["name"]) == (7, "z")


def test_rows_carry_their_arrival_and_schema() -> None:
    decoded = Decoder(APPEND, ("v", "_tp_sn", "_tp_time")).decode(records([b"{}", b"{}"], partition=5))

    assert decoded.rows.schema == pa.schema(
        [
            ("v", pa.string()),
            ("_tp_sn", pa.int64()),
            ("_tp_time", UTC_MS),
            (ARRIVAL, pa.int64()),
            pa.field(DELTA, DELTA_TYPE, nullable=False),
        ]
    )
    assert decoded.rows[ARRIVAL].to_pylist() == [5 << 44, 5 << 44 | 1]
    assert decoded.rows["_tp_sn"].to_pylist() == [0, 1]
    assert decoded.rejected.schema == REJECTED


def test_event_time_is_the_member_then_the_declared_column_then_the_timestamp() -> None:
    schema = StreamSchema("s", (Column("t", pa.timestamp("us")),), event_time="t")
    values = [b'{"t":"2026-01-01 00:00:00.123999","_tp_time":"2026-02-01 00:00:00"}', b'{"t":"2026-01-01"}', b"{}"]

    times = Decoder(schema, ("_tp_time",)).decode(records(values)).rows["_tp_time"].to_pylist()

    kafka = dt.datetime.fromtimestamp((FIRST_TIMESTAMP_US + 2000) / 1e6, dt.UTC)
    assert times == [dt.datetime(2026, 2, 1, tzinfo=dt.UTC), dt.datetime(2026, 1, 1, tzinfo=dt.UTC), kafka]


def test_an_upsert_a_tombstone_and_a_delete_by_delta() -> None:
    assert rows(
        UPSERT,
        (b'{"k":1}', b'{"k":1,"v":"a"}'),
        (b'{"k":1}', None),
        (None, b'{"k":2,"v":"b","_tp_delta":-1}'),
    ) == [(1, "a", 7, 1), (1, None, 7, -1), (2, "b", 7, -1)]


def test_a_primary_key_that_the_value_lacks_comes_from_the_key() -> None:
    assert rows(UPSERT, (b'{"k":4}', b'{"v":"a"}'), (b"5", b'{"v":"b"}'), (None, b'{"k":6}')) == [
        (4, "a", 7, 1),
        (5, "b", 7, 1),
        (6, None, 7, 1),
    ]


@pytest.mark.parametrize(
    ("key", "expected"), [(b'{"k":"a b"}', "a b"), (b'"a"', "a"), (b"abc", "abc"), (b"17", "17"), (b'x"y', 'x"y')]
)
def test_a_bare_key_of_a_text_column(key: bytes, expected: str) -> None:
    schema = StreamSchema("s", (Column("k", pa.string()),), Kind.UPSERT, ("k",))
    assert Decoder(schema, ("k",)).decode(records([None], [key])).rows["k"].to_pylist() == [expected]


def test_a_composite_key_may_be_split_between_key_and_value() -> None:
    schema = StreamSchema("s", (Column("a", pa.int64()), Column("b", pa.string())), Kind.UPSERT, ("a", "b"))
    batch = records([b'{"a":1}', None, b'{"a":3,"b":"z"}'], [b'{"b":"x"}', b'{"a":2,"b":"y"}', None])
    decoded = Decoder(schema, ("a", "b")).decode(batch).rows
    assert list(zip(*decoded.select(["a", "b"]).to_pydict().values(), strict=True)) == [(1, "x"), (2, "y"), (3, "z")]


@pytest.mark.parametrize("schema", [CHANGELOG, CHANGELOG_KV], ids=lambda schema: schema.kind.value)
def test_a_changelog_has_its_delta_in_the_value(schema: StreamSchema) -> None:
    assert rows(schema, (None, b'{"k":1,"_tp_delta":-1}'), (None, b'{"k":1}')) == [(1, None, 7, -1), (1, None, 7, 1)]


@pytest.mark.parametrize(
    ("schema", "value", "key", "expected"),
    [
        (APPEND, b'{"k":"abc"}', None, "column k: expected int64, found text 'abc'"),
        (
            APPEND,
            b'{"n":3000000000}',
            None,
            "column n: expected int32 (-2147483648 to 2147483647), found number 3000000000",
        ),
        (APPEND, b'{"n":1.5}', None, "column n: expected int32, found number 1.5"),
        (APPEND, b'{"v":true}', None, "column v: expected text, found boolean true"),
        (APPEND, b'{"v":{"a":1}}', None, "column v: expected text, found an object of 1"),
        (
            APPEND,
            b'{"k":1,"v":oops}',
            None,
            "malformed JSON at character 11: unexpected character, expected a JSON value",
        ),
        (APPEND, b'{"k":NaN}', None, "malformed JSON at character 5: unexpected character, expected a JSON value"),
        (APPEND, b"", None, "malformed JSON at character 0: Input is a zero-length, empty document"),
        (APPEND, b"[1]", None, "the value is an array of 1; a JSON object is expected"),
        (APPEND, b"null", None, "the value is null; a JSON object is expected"),
        (APPEND, None, b"k", "null value in an append stream"),
        (CHANGELOG, None, b"k", "null value in a changelog stream"),
        (CHANGELOG_KV, None, b'{"k":1}', "null value in a changelog_kv stream"),
        (CHANGELOG, b'{"_tp_delta":7}', None, "_tp_delta is 7; it must be 1 or -1"),
        (UPSERT, b'{"v":"a"}', None, "primary key column k is missing"),
        (UPSERT, b'{"v":"a"}', b'{"j":1}', "primary key column k is missing"),
        (UPSERT, b'{"k":null}', b'{"k":1}', "primary key column k is null"),
        (UPSERT, None, b"{}", "primary key column k is missing"),
        (UPSERT, None, b'{"k":null}', "primary key column k is null"),
        (UPSERT, None, b"abc", "malformed JSON at character 5 of the key: unexpected character, expected a JSON value"),
        (UPSERT, None, b'"abc"', "column k: expected int64, found text 'abc'"),
        (CHANGELOG_KV, b'{"v":"a"}', None, "primary key column k is missing"),
    ],
)
def test_a_rejected_record_says_why(
    schema: StreamSchema, value: bytes | None, key: bytes | None, expected: str
) -> None:
    assert reason(schema, value, key) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"2026-01-31 12:00:00"', "2026-01-31T12:00:00"),
        ('"2026-01-31T12:00:00.25"', "2026-01-31T12:00:00.250000"),
        ('"2026-01-31 12:00:00.123456789"', "2026-01-31T12:00:00.123456"),
        ('"2026-01-31T12:00:00Z"', "2026-01-31T12:00:00"),
        ('"2026-01-31 12:00:00.5+05:30"', "2026-01-31T06:30:00.500000"),
        ('"2026-01-31 12:00:00 -08"', "2026-01-31T20:00:00"),
        ('"2026-01-31"', "2026-01-31T00:00:00"),
        ('"1969-12-31 23:59:59.5"', "1969-12-31T23:59:59.500000"),
        ("1700000000", "2023-11-14T22:13:20"),
        ("1700000000.5", "2023-11-14T22:13:20.500000"),
        ("1700000000123", "2023-11-14T22:13:20.123000"),
        ("1700000000123456", "2023-11-14T22:13:20.123456"),
        ("1700000000123456789", "2023-11-14T22:13:20.123456"),
        ("-1", "1969-12-31T23:59:59"),
    ],
)
def test_times_are_read_as_text_and_as_numbers(text: str, expected: str) -> None:
    assert one_value(pa.timestamp("us"), text).isoformat() == expected
    zoned = one_value(UTC_MS, text)
    assert zoned == dt.datetime.fromisoformat(expected + "+00:00").replace(microsecond=zoned.microsecond)


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (pa.float64(), "3", 3.0),
        (pa.int32(), "3.0", 3),
        (pa.uint64(), "18446744073709551615", 2**64 - 1),
        (pa.date32(), '"2026-01-31"', dt.date(2026, 1, 31)),
        (pa.time64("us"), '"12:30:00.25"', dt.time(12, 30, 0, 250_000)),
        (pa.binary(), '"AAE="', b"\x00\x01"),
        (pa.list_(pa.list_(pa.int64())), "[[1],[],null]", [[1], [], None]),
        (pa.map_(pa.string(), pa.float64()), '{"a":1,"b":null}', [("a", 1.0), ("b", None)]),
        (pa.struct([("a", pa.date32())]), '{"a":"2026-01-31","z":0}', {"a": dt.date(2026, 1, 31)}),
    ],
    ids=str,
)
def test_values_of_other_types(kind: pa.DataType, text: str, expected: Any) -> None:
    assert one_value(kind, text) == expected


def test_a_value_over_several_lines() -> None:
    assert rows(APPEND, (None, b'{\n  "k": 1,\n  "v": "a"\n}\n'), (None, b'{"k":2}')) == [
        (1, "a", 7, 1),
        (2, None, 7, 1),
    ]


@pytest.mark.parametrize("schema", [APPEND, UPSERT, CHANGELOG, CHANGELOG_KV], ids=lambda schema: schema.kind.value)
def test_a_record_with_neither_key_nor_value_is_a_heartbeat(schema: StreamSchema) -> None:
    keys, values = [b'{"k":1}', None, b"", b'{"k":2}'], [b'{"k":1}', None, None, b'{"k":2}']
    for decode in (Decoder(schema, ("k",)).decode, Decoder(schema, ("k",)).decode_singly):
        decoded = decode(records(values, keys))

        assert decoded.rows["k"].to_pylist() == [1, 2]
        assert decoded.rejected.num_rows == 0
        first_ms = FIRST_TIMESTAMP_US // 1000
        assert decoded.heartbeats.to_pylist() == [
            {"partition": 3, "offset": 1, "event_ms": first_ms + 1},
            {"partition": 3, "offset": 2, "event_ms": first_ms + 2},
        ]


def test_good_and_bad_records_mixed_keep_their_order() -> None:
    values: list[bytes | None] = [b'{"k":%d}' % n for n in range(1000)]
    values[10], values[500], values[999], values[20] = b"{", b'{"k":"x"}', b"[]", b'{"k":\n20}'
    decoded = Decoder(APPEND, ("k",)).decode(records(values))
    assert decoded.rows["k"].to_pylist() == [n for n in range(999) if n not in (10, 500)]
    assert decoded.rejected["offset"].to_pylist() == [10, 500, 999]


def test_record_batches_and_empty_batches() -> None:
    (batch,) = records([b'{"k":1}']).to_batches()
    decoder = pickle.loads(pickle.dumps(Decoder(APPEND, ("k",))))
    assert decoder.decode(batch).rows["k"].to_pylist() == [1]
    assert decoder.decode(records([])).rows.num_rows == 0


def test_a_default_that_is_not_of_the_type_is_an_error_of_the_statement() -> None:
    with pytest.raises(SqlError, match="expected int32, found text 'x'"):
        Decoder(StreamSchema("s", (Column("n", pa.int32(), default="'x'"),)), ("n",))


def test_a_type_without_json_form_is_an_error_of_the_statement() -> None:
    with pytest.raises(SqlError, match="has no form in JSON"):
        Decoder(StreamSchema("s", (Column("n", pa.month_day_nano_interval()),)), ("n",))


def test_an_explicit_null_is_no_default_however_its_name_is_written() -> None:
    texts = [b'{"k":1,"\\u006e":null}', b'{"k":2,"n":null}', b'{"k":3}', b'{"k":4,"v":"\\u006e"}', b'{"k":5,"n":6}']
    rows = Decoder(StreamSchema("s", COLUMNS), ("k", "n")).decode(records(texts)).rows
    assert rows["n"].to_pylist() == [None, None, 7, 7, 6]


@pytest.mark.parametrize("first", ["null", None])
def test_times_as_numbers_are_read_at_once_where_the_first_record_has_none(
    first: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = StreamSchema("s", (Column("t", pa.timestamp("ms")),))
    decoder = Decoder(schema, ("t",))
    monkeypatch.setattr(decoder, "_decode_each", None)
    texts = [b"{}" if first is None else b'{"t":null}', b'{"t":1700000000000}', b'{"t": 1700000000001}']
    rows = decoder.decode(records(texts)).rows
    assert rows["t"].cast(pa.int64()).is_null().to_pylist() == [True, False, False]


def test_a_decimal_of_all_its_digits_is_held() -> None:
    decoder = Decoder(StreamSchema("s", (Column("v", pa.decimal128(38, 9)),)), ("v",))
    batch = records([b'{"v":"99999999999999999999999999995.000000000"}'])
    for decoded in (decoder.decode(batch), decoder.decode_singly(batch)):
        assert [str(row["v"]) for row in decoded.rows.to_pylist()] == ["99999999999999999999999999995.000000000"]


@pytest.mark.parametrize(
    "number",
    [
        *("1e-999999999", '"1e-999999999"', '"1E-3000000"', "-1e-77", "1.5e-00099", '"1\\u0065-3000000"'),
        *('"1e\\u002d3000000"', '"1e-\\u0033000000"', "0." + "0" * 100 + "1"),
    ],
    ids=lambda number: number[:24],
)
@pytest.mark.parametrize("inside", ["%s", "[1,%s]", '{"a":%s}'])
def test_an_exponent_beyond_all_decimals_is_rejected_alone(number: str, inside: str) -> None:
    decimal = pa.decimal128(38, 10)
    kind = {"%s": decimal, "[1,%s]": pa.list_(decimal)}.get(inside, pa.struct([("a", decimal)]))
    decoder = Decoder(StreamSchema("s", (Column("v", kind),)), ("v",))
    good, bad = (b'{"v":%s}' % (inside % one).encode() for one in ("1e-05", number))
    decoded = decoder.decode(records([good, bad, good]))
    assert decoded.rows.num_rows == 2
    (rejected,) = decoded.rejected.to_pylist()
    assert rejected["reason"].startswith("column v: expected decimal(38, 10), found ")
