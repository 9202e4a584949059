"""What the records of a topic add up to."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from dovetail.changelog.decode import Decoder
from dovetail.changelog.schema import Column, Kind, StreamSchema
from dovetail.changelog.topic_content import content
from tests.changelog.records import records

COLUMNS = (Column("k", pa.int64()), Column("v", pa.string()))
VALUES: tuple[bytes, ...] = (
    b'{"k":1,"v":"a"}',
    b'{"k":2,"v":"b"}',
    b'{"k":1,"v":"a"}',
    b'{"k":2,"v":"b","_tp_delta":-1}',
    b'{"k":3,"v":"c","_tp_delta":-1}',
)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Kind.APPEND, [(1, "a"), (2, "b"), (1, "a"), (2, "b"), (3, "c")]),
        (Kind.CHANGELOG, [(1, "a"), (1, "a")]),
        (Kind.UPSERT, [(1, "a")]),
        (Kind.CHANGELOG_KV, [(1, "a")]),
    ],
)
def test_content_by_kind(kind: Kind, expected: list[tuple[Any, ...]]) -> None:
    key = ("k",) if kind in (Kind.UPSERT, Kind.CHANGELOG_KV) else ()
    schema = StreamSchema("s", COLUMNS, kind, key)
    decoded = Decoder(schema, ("k", "v")).decode(records(VALUES))
    held = content(schema, decoded.rows)
    assert [(row["k"], row["v"]) for row in held.to_pylist()] == expected
    assert held.column_names == ["k", "v"]


def test_the_last_row_of_a_key_goes_by_arrival_not_by_place() -> None:
    schema = StreamSchema("s", COLUMNS, Kind.UPSERT, ("k",))
    rows = (
        Decoder(schema, ("k", "v"))
        .decode(records([b'{"k":1,"v":"a"}', b'{"k":1,"v":"b"}', None], [b"1", b"1", b"2"]))
        .rows
    )
    assert content(schema, rows.take(pa.array([1, 2, 0]))).to_pylist() == [{"k": 1, "v": "b"}]


@pytest.mark.parametrize(
    ("first_stays", "values", "expected"),
    [
        (False, [(1, 5), (2, 4), (3, 5)], [3]),
        (True, [(1, 5), (2, 4), (3, 5)], [1]),
        (False, [(1, 5), (2, None)], [1]),
        (False, [(1, None), (2, None)], [2]),
        (False, [(1, 9), None, (2, 4), (3, 3)], [2]),
        (False, [(1, 9), None], []),
    ],
)
def test_the_greatest_version_of_a_key_stands(
    first_stays: bool, values: list[tuple[int, int | None] | None], expected: list[int]
) -> None:
    columns = (Column("k", pa.int64()), Column("n", pa.int64()), Column("rev", pa.int64()))
    schema = StreamSchema("s", columns, Kind.UPSERT, ("k",), version="rev", first_stays=first_stays)
    written = [None if value is None else json.dumps({"k": 7, "n": value[0], "rev": value[1]}) for value in values]
    rows = Decoder(schema, ("k", "n", "rev")).decode(
        records([None if text is None else text.encode() for text in written], [b'{"k":7}'] * len(written))
    )
    assert content(schema, rows.rows).column("n").to_pylist() == expected


def test_nothing_read_nothing_held() -> None:
    schema = StreamSchema("s", COLUMNS, Kind.UPSERT, ("k",))
    assert content(schema, Decoder(schema, ("k", "v")).decode(records([])).rows).num_rows == 0
