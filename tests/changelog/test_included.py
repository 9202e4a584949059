"""Columns that are parts of a record: read like any other, whatever keys and headers hold."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dovetail.changelog.decode import Decoder
from dovetail.changelog.errors import Unsupported
from dovetail.changelog.formats.record_parts import HEADERS_TYPE, expect_written
from dovetail.changelog.schema import SEQUENCE, TIME, Column, Included, Kind, RecordFormat, RecordPart, StreamSchema
from dovetail.changelog.topic_content import content
from tests.changelog.records import FIRST_TIMESTAMP_US, records, texts

Headers = Sequence[tuple[str, bytes | None]]
LISTED = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
PARTS = (
    Included("k", pa.string(), RecordPart.KEY),
    Included("raw", pa.binary(), RecordPart.KEY),
    Included("p", pa.int32(), RecordPart.PARTITION),
    Included("o", pa.string(), RecordPart.OFFSET),
    Included("t", pa.timestamp("us", "UTC"), RecordPart.TIMESTAMP),
    Included("all", pa.map_(pa.string(), pa.string()), RecordPart.HEADERS),
    Included("listed", LISTED, RecordPart.HEADERS),
    Included("h", pa.string(), RecordPart.HEADER, "h"),
    Included("b", pa.binary(), RecordPart.HEADER, "h"),
)
NAMES = tuple(one.name for one in PARTS)
STREAM = StreamSchema("s", (Column("n", pa.int64()),), included=PARTS)


def headed(
    values: Sequence[bytes | None], keys: Sequence[bytes | None], headers: Sequence[Headers], partition: int = 3
) -> pa.Table:
    return records(values, keys, partition).append_column("headers", pa.array(headers, HEADERS_TYPE))


def text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")


def nasty() -> st.SearchStrategy[bytes | None]:
    return st.none() | texts().map(str.encode) | st.binary(max_size=4)


def some_headers() -> st.SearchStrategy[Headers]:
    return st.lists(st.tuples(st.sampled_from(["h", "g", "", "é"]) | texts(), nasty()), max_size=5)


@given(
    st.lists(
        st.tuples(st.sampled_from([b'{"n":1}', b'{"n":"1"}', b"x", None, b"{}"]), nasty(), some_headers()), max_size=6
    ),
    st.integers(0, 3),
)
@example([(b'{"n":1}', None, [("h", None), ("h", b"\xff"), ("h", b"")])], 0)
def test_each_row_has_the_parts_of_its_record(
    given_records: list[tuple[bytes | None, bytes | None, Headers]], skipped: int
) -> None:
    values, keys, headers = map(list, zip(*given_records, strict=True)) if given_records else ([], [], [])
    batch = headed(values, keys, headers).slice(skipped)
    decoder = pickle.loads(pickle.dumps(Decoder(STREAM, (*NAMES, SEQUENCE, TIME))))
    rows = decoder.decode(batch).rows
    assert rows.equals(decoder.decode_singly(batch).rows)
    for row in rows.to_pylist():
        offset = row[SEQUENCE]
        key, of_record = keys[offset], headers[offset]
        named = [value for name, value in of_record if name == "h"]
        assert (row["k"], row["raw"], row["p"], row["o"]) == (text(key), key, 3, str(offset))
        assert row["t"] == row[TIME]
        assert dict(row["all"]) == {name: text(value) for name, value in of_record}
        assert len(row["all"]) == len(dict(of_record))
        assert [(one["key"], one["value"]) for one in row["listed"]] == of_record
        last = named[-1] if named else None
        assert (row["h"], row["b"]) == (text(last), last)


def test_headers_are_asked_for_only_where_a_column_is_made_of_them() -> None:
    assert not Decoder(STREAM, ("n", "k", "raw", "p", "o", "t", TIME)).headed
    for name in ("all", "listed", "h", "b"):
        assert Decoder(STREAM, (name,)).headed
    plain = Decoder(STREAM, ("k", "o")).decode(records([b"{}"], [b"x"])).rows
    assert (plain["k"].to_pylist(), plain["o"].to_pylist()) == (["x"], ["0"])


@pytest.mark.parametrize(
    ("value", "form"), [(b"1", RecordFormat("csv")), (b"1", RecordFormat("raw")), (b'{"n":"1","k":7}', RecordFormat())]
)
def test_no_format_has_a_place_for_them(value: bytes, form: RecordFormat) -> None:
    stream = StreamSchema("s", (Column("n", pa.string()),), value=form, included=PARTS)
    decoded = Decoder(stream, ("n", "k", "h")).decode(headed([value], [b"key"], [[("h", b"1")]]))
    assert [decoded.rows[name].to_pylist() for name in ("n", "k", "h")] == [["1"], ["key"], ["1"]]


def test_the_event_time_may_be_the_timestamp_of_the_record() -> None:
    stream = StreamSchema("s", (Column("n", pa.int64()),), event_time="t", included=PARTS)
    rows = Decoder(stream, ("t", TIME)).decode(records([b"{}"])).rows
    assert rows["t"].cast(pa.int64()).to_pylist() == [FIRST_TIMESTAMP_US]
    assert rows[TIME].cast(pa.int64()).to_pylist() == [FIRST_TIMESTAMP_US // 1000]


def test_a_retraction_takes_a_row_of_another_record_away() -> None:
    stream = StreamSchema("s", (Column("n", pa.int64()),), Kind.CHANGELOG, included=PARTS)
    taken = [b'{"n":1}', b'{"n":1}', b'{"n":1,"_tp_delta":-1}']
    decoded = Decoder(stream, ("n", "o", "k")).decode(records(taken, [b"a", b"b", b"c"]))
    assert content(stream, decoded.rows).select(["n", "o", "k"]).to_pylist() == [{"n": 1, "o": "1", "k": "b"}]


def test_they_are_refused_where_rows_are_written() -> None:
    expect_written(STREAM, "n", "INSERT")
    with pytest.raises(Unsupported, match="the header of the record") as refused:
        expect_written(STREAM, "h", "INSERT")
    assert "leave h out" in str(refused.value)


def test_what_a_query_has_written_elsewhere_holds_them_in_its_values() -> None:
    columns: tuple[Any, ...] = ("n", "o", "h")
    rows = Decoder(STREAM.as_written(), columns).decode(records([b'{"n":1,"o":"7","h":"x"}'])).rows
    assert rows.select(columns).to_pylist() == [{"n": 1, "o": "7", "h": "x"}]
