"""Batches decoded at once and records decoded one by one give the same rows and the same rejections."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from dovetail.changelog.decode import Decoder
from dovetail.changelog.schema import Column, Kind, StreamSchema
from tests.changelog.records import records

COLUMNS = (
    Column("k", pa.int32()),
    Column("name", pa.string(), default="'anon'", former=("title",)),
    Column("f", pa.float32(), former=("g", "h")),
    Column("d", pa.decimal128(8, 2)),
    Column("t", pa.timestamp("us")),
    Column("b", pa.bool_()),
    Column("l", pa.list_(pa.int64())),
    Column("s", pa.struct([("a", pa.int32()), ("b", pa.string())])),
)
NAMES = tuple(column.name for column in COLUMNS)
KINDS = tuple(
    StreamSchema("s", COLUMNS, kind, ("k",) if kind in (Kind.UPSERT, Kind.CHANGELOG_KV) else (), "t") for kind in Kind
)

INTEGERS = st.integers(-5, 5) | st.sampled_from([2**31, -(2**31), 2**63, 2**64, 10**19, 10**12, 10**15, 10**18])
NUMBERS = INTEGERS | st.floats(allow_nan=True) | st.sampled_from([1.5, 1.0, 1e300, 0.1, 12345678.25])
TIMES = st.sampled_from(
    [
        "2026-01-31 12:00:00",
        "2026-01-31T12:00:00.5Z",
        "2026-01-31 12:00:00.123456789",
        "2026-01-31",
        "1969-12-31 23:59:59.9999",
        "2026-01-31 12:00+02:00",
        "2026-02-30",
        "soon",
        "9999-12-31 00:00:00",
        "2026-01-31 12:00:00 Z",
        " 2026-01-31",
    ]
)
TEXTS = st.sampled_from(["", "abc", '"', "\\", "\n", "NaN", ", Inf", "é", "\u2028", "😀", "1.50", "1.5555", '"name"'])
ANY = st.none() | st.booleans() | NUMBERS | TEXTS | TIMES | st.lists(INTEGERS, max_size=2) | st.just({"a": 1, "b": "x"})
RIGHT: dict[str, st.SearchStrategy[Any]] = {
    "k": st.integers(0, 9),
    "name": TEXTS,
    "title": TEXTS | st.none(),
    "f": NUMBERS | st.none(),
    "g": NUMBERS | st.none(),
    "h": NUMBERS | st.none(),
    "d": st.sampled_from([1, 1.5, 0.25, "2.50", 100000]),
    "t": TIMES | st.sampled_from([1_700_000_000, 1_700_000_000_000, 1_700_000_000.25]),
    "b": st.booleans(),
    "l": st.lists(st.none() | INTEGERS, max_size=2),
    "s": st.fixed_dictionaries({}, optional={"a": st.integers(0, 9) | st.none(), "b": TEXTS, "z": ANY}),
    "_tp_time": TIMES,
    "_tp_delta": st.sampled_from([1, -1]),
    "unknown": ANY,
}
MEMBERS = st.fixed_dictionaries({}, optional=RIGHT)
ODD_MEMBERS = st.fixed_dictionaries({}, optional=dict.fromkeys(RIGHT, ANY))


def written(members: dict[str, Any], *, indent: int | None = None, ascii_only: bool = False) -> bytes:
    return json.dumps(members, indent=indent, ensure_ascii=ascii_only).encode()


def mutated(value: bytes, place: int, byte: bytes) -> bytes:
    return value[: place % (len(value) + 1)] + byte + value[place % (len(value) + 1) + 1 :]


OBJECTS = st.builds(written, MEMBERS)
VALUES = st.one_of(
    OBJECTS,
    OBJECTS,
    st.builds(written, ODD_MEMBERS),
    st.builds(written, MEMBERS, indent=st.just(2), ascii_only=st.booleans()),
    st.builds(mutated, OBJECTS, st.integers(0, 200), st.binary(max_size=2)),
    st.sampled_from(
        [b"", b"null", b"1", b"[]", b"{}", b'{"k":1}{"k":2}', b'{"k":', b"1}", b'{"a":{}', b'{"k":1,"k":2}', None]
    ),
)
KEYS = st.sampled_from(
    [None, b"", b"7", b'"7"', b"x", b'{"k":3}', b'{"k":"x"}', b'{"k":null}', b"{}", b"{", b"NaN", b"\xff"]
)


def one_by_one(decoder: Decoder, batch: pa.Table) -> tuple[list[Any], list[Any]]:
    """Each record decoded by itself: alone it is either plain or looked at closely."""
    parts = [decoder.decode(batch.slice(position, 1)) for position in range(batch.num_rows)]
    return (
        [row for part in parts for row in part.rows.to_pylist()],
        [row for part in parts for row in part.rejected.to_pylist()],
    )


def closely(decoder: Decoder, batch: pa.Table) -> tuple[list[Any], list[Any]]:
    """Every record looked at closely, none read as part of a batch."""
    decoded = decoder.decode_singly(batch)
    return decoded.rows.to_pylist(), decoded.rejected.to_pylist()


@given(schema=st.sampled_from(KINDS), batch=st.lists(st.tuples(VALUES, KEYS), max_size=8))
@example(KINDS[0], [(b'{"k":1', None), (b'"l":[]}', None), (b'{"k":1}{"k":2}', None)])
@example(KINDS[0], [(b'{"l":[{"x":0}', None), (b"{}]}", None), (b"{}{}", None)])
def test_a_batch_and_its_records_agree(schema: StreamSchema, batch: list[tuple[bytes | None, bytes | None]]) -> None:
    decoder = Decoder(schema, (*NAMES, "_tp_time", "_tp_sn"))
    table = records([value for value, _ in batch], [key for _, key in batch])

    decoded = decoder.decode(table)

    together = repr((decoded.rows.to_pylist(), decoded.rejected.to_pylist()))
    assert together == repr(one_by_one(decoder, table))
    assert together == repr(closely(decoder, table))
    assert decoded.rows.num_rows + decoded.rejected.num_rows + decoded.heartbeats.num_rows == len(batch)
