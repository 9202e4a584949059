"""A rejected record keeps its bytes and gains headers, and is read back as a row."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.changelog.dead_letter import (
    BRIEF,
    DEAD_LETTER_SCHEMA,
    DeadLetter,
    dead_letter_rows,
    is_dead_letter_topic,
    mark,
    replayed_offsets,
    row_too_large,
    to_dead_letters,
    topic_of,
)
from dovetail.changelog.decode import Decoder
from dovetail.changelog.errors import RecordRejected
from dovetail.changelog.schema import Column, StreamSchema
from dovetail.services.session.tail.topic_views import RawRecords
from tests.changelog.records import UTC_MS, records

WRITTEN = datetime(2024, 1, 31, 12, 0, 0, 5000, UTC)


def rejected() -> pa.Table:
    decoder = Decoder(StreamSchema("s", (Column("k", pa.int64()),)), ("k",))
    return decoder.decode(records([b'{"k":1}', b'{"k":"\xff"}'], [None, b"\x00"], partition=2)).rejected


def topic(messages: Iterable[dict[str, Any]]) -> pa.Table:
    """The messages as the records of a topic."""
    held = list(messages)
    columns = {
        "key": pa.array([message["key"] for message in held], pa.binary()),
        "value": pa.array([message["value"] for message in held], pa.binary()),
        "timestamp": pa.array([WRITTEN] * len(held), UTC_MS),
        "partition": pa.array([0] * len(held), pa.int32()),
        "offset": pa.array(range(len(held)), pa.int64()),
        "headers": pa.array([message["headers"] for message in held], pa.map_(pa.string(), pa.binary())),
    }
    return pa.table(columns)


def test_a_dead_letter_keeps_the_bytes_and_names_place_reason_and_query() -> None:
    (dead_letter,) = to_dead_letters(rejected(), topic="clicks", query="joined")

    assert dead_letter == DeadLetter(
        b"\x00",
        b'{"k":"\xff"}',
        (
            ("dovetail.topic", b"clicks"),
            ("dovetail.partition", b"2"),
            ("dovetail.offset", b"1"),
            ("dovetail.timestamp", b"1700000000001"),
            ("dovetail.reason", b"the value is not UTF-8"),
            ("dovetail.query", b"joined"),
        ),
    )
    assert topic_of("joined") == "joined.dead_letter"


def test_a_letter_is_read_back_as_a_row() -> None:
    dead_letters = to_dead_letters(rejected(), topic="clicks", query="joined")
    assert dead_letter_rows(topic(dead_letter.message for dead_letter in dead_letters)).to_pylist() == [
        {
            "source_topic": "clicks",
            "source_partition": 2,
            "source_offset": 1,
            "source_time": datetime(2023, 11, 14, 22, 13, 20, 1000, UTC),
            "rejected_at": WRITTEN,
            "query": "joined",
            "whole_bytes": None,
            "reason": "the value is not UTF-8",
            "key": "\0",
            "value": '{"k":"\N{REPLACEMENT CHARACTER}"}',
        }
    ]


def test_what_is_too_large_for_a_letter_is_cut_and_says_so() -> None:
    whole = row_too_large(b"k", b"v" * 10_000, topic="out", query="q", reason="large", dead_letter_bytes=20_000)
    cut = row_too_large(b"k", b"v" * 10_000, topic="out", query="q", reason="large", dead_letter_bytes=8_000)
    (record,) = to_dead_letters(rejected(), topic="clicks", query="q", dead_letter_bytes=4_100)
    rows = dead_letter_rows(topic(dead_letter.message for dead_letter in (whole, cut, record))).to_pylist()
    assert [(row["whole_bytes"], len(row["value"])) for row in rows] == [(None, 10_000), (10_001, 1952), (10, 2)]
    assert [row["source_offset"] for row in rows] == [None, None, 1]


LONG = ("x" * 600_000, "\u20ac" * 400_000, "\ud800" * 2_000, "x" * 998 + "\u20ac")


@pytest.mark.parametrize("reason", LONG, ids=lambda reason: ascii(reason[0]))
@pytest.mark.parametrize("dead_letter_bytes", [BRIEF, 6_000, 1_000_000])
def test_a_letter_fits_its_topic_whatever_its_reason_is(reason: str, dead_letter_bytes: int) -> None:
    value = b"v" * 999_999
    dead_letter = row_too_large(
        b"k", value, topic="t" * 249, query="q" * 249, reason=reason, dead_letter_bytes=dead_letter_bytes
    )
    reason_header = dict(dead_letter.headers)["dovetail.reason"]
    assert len(reason_header) <= 1_000
    assert reason_header.decode().endswith("\u2026")
    size = (
        len(dead_letter.key or b"")
        + len(dead_letter.value or b"")
        + sum(len(n) + len(t) + 9 for n, t in dead_letter.headers)
    )
    assert size <= max(dead_letter_bytes, 4_096)
    assert dict(dead_letter.headers)["dovetail.bytes"] == b"1000000"


def test_a_reason_that_is_short_enough_stands_as_it_is() -> None:
    for reason in ("", "\u20ac" * 333 + "x", "x" * 1_000):
        assert RecordRejected(reason).what == reason
    assert RecordRejected("\u20ac" * 334).what == "\u20ac" * 332 + "\u2026"


@pytest.mark.parametrize("headers", [[], [("other", b"x")], [("dovetail.offset", b"ten"), ("dovetail.topic", b"\xff")]])
def test_a_record_that_is_no_letter_is_a_row_of_what_it_has(headers: list[tuple[str, bytes]]) -> None:
    [row] = dead_letter_rows(topic([{"key": None, "value": b"x", "headers": headers}])).to_pylist()
    assert (row["value"], row["reason"], row["source_offset"], row["whole_bytes"]) == ("x", None, None, None)


@pytest.mark.parametrize("time_ms", [10**18 - 1, 253_402_300_800_000, -(10**17)])
def test_a_time_that_no_row_can_hold_is_null(time_ms: int) -> None:
    dead_letters = topic([{"key": None, "value": b"x", "headers": [("dovetail.timestamp", b"%d" % time_ms)]}])
    dead_letters = dead_letters.set_column(2, "timestamp", pa.array([time_ms], UTC_MS))
    [row] = dead_letter_rows(dead_letters).to_pylist()
    assert (row["value"], row["source_time"], row["rejected_at"]) == ("x", None, None)
    [shown] = RawRecords().decoded(dead_letters).to_pylist()
    assert (shown["value"], shown["timestamp"]) == ("x", None)


def test_no_records_are_no_letters() -> None:
    assert dead_letter_rows(topic([])) == DEAD_LETTER_SCHEMA.empty_table()


@given(st.sets(st.integers(0, 60), min_size=1))
def test_a_mark_tells_the_offsets_that_were_put_back(offsets: set[int]) -> None:
    records = topic([mark(sorted(offsets))])
    [(partition, at_ms, ranges)] = replayed_offsets(records)
    assert (partition, at_ms) == (0, WRITTEN.timestamp() * 1000)
    assert {one for first, last in ranges for one in range(first, last + 1)} == offsets
    assert dead_letter_rows(records).num_rows == 0


@pytest.mark.parametrize(
    ("topic", "is_one"), [("v.dead_letter", True), ("v.f1.dead_letter", True), ("v", False), (".dead_letter", False)]
)
def test_dead_letters_are_known_by_the_name_of_their_topic(topic: str, is_one: bool) -> None:
    assert is_dead_letter_topic(topic) is is_one
