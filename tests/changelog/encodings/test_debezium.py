"""Envelopes of Debezium: what they say of rows, read at once and one by one, and written."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dovetail.changelog.changes import DELTA, Changes
from dovetail.changelog.decode import Decoder
from dovetail.changelog.encode import records_of
from dovetail.changelog.schema import ARRIVAL, Column, Kind, RecordFormat, StreamSchema
from dovetail.changelog.topic_content import content
from dovetail.changelog.values import normalised
from tests.changelog.records import TYPES, records, values

DEBEZIUM = RecordFormat(envelope="debezium")
COLUMNS = (
    Column("k", pa.int32()),
    Column("name", pa.string(), default="'anon'", former=("title",)),
    Column("d", pa.decimal128(8, 2)),
    Column("t", pa.timestamp("us")),
)
NAMES = tuple(column.name for column in COLUMNS)
KEYED = StreamSchema("s", COLUMNS, Kind.UPSERT, ("k",), value=DEBEZIUM)
CHANGELOG = StreamSchema("s", COLUMNS, Kind.CHANGELOG, value=DEBEZIUM)
CHANGELOG_KV = StreamSchema("s", COLUMNS, Kind.CHANGELOG_KV, ("k",), value=DEBEZIUM)

ODD: st.SearchStrategy[Any] = st.sampled_from([None, 1, "x", [], 2**40, 1.5, {"a": 1}])
ROWS = st.fixed_dictionaries(
    {},
    optional={
        "k": st.integers(0, 3) | ODD,
        "name": st.sampled_from(["x", "", '"after"', None]),
        "title": st.sampled_from(["y", None]),
        "d": st.sampled_from([1, 1.5, "2.50", None, 1.555]),
        "t": st.sampled_from(["2026-01-31T12:00:00Z", 1_700_000_000_000_000, None, "soon"]),
        "other": ODD,
    },
)
ENVELOPES = st.fixed_dictionaries(
    {"op": st.sampled_from(["c", "r", "u", "d", "c", "u", "d", "t", "m", None, 1])},
    optional={"before": ROWS | st.none() | ODD, "after": ROWS | st.none() | ODD, "ts_ms": ODD, "source": ODD},
)
WRAPPED = ENVELOPES.map(lambda payload: {"schema": {"type": "struct"}, "payload": payload})
VALUES = (ENVELOPES | WRAPPED | ROWS).map(lambda value: json.dumps(value).encode()) | st.sampled_from(
    [None, b"", b"{}", b"null", b'{"payload":null}', b'{"payload":1}', b'{"op":null,"payload":{"op":"d"}}']
)
KEYS = st.sampled_from(
    [
        None,
        b"7",
        b'{"k":3}',
        b'{"k":"x"}',
        b"x",
        b'{"schema":{},"payload":{"k":4}}',
        b'{"payload":null}',
        b'{"payload":5}',
    ]
)


def envelope(op: str, before: Any, after: Any) -> bytes:
    return json.dumps({"before": before, "after": after, "op": op, "ts_ms": 1, "source": {"table": "s"}}).encode()


def read(decoder: Decoder, batch: pa.Table, *, singly: bool) -> str:
    decoded = decoder.decode_singly(batch) if singly else decoder.decode(batch)
    return repr((decoded.rows.to_pylist(), decoded.rejected.to_pylist()))


@given(schema=st.sampled_from([KEYED, CHANGELOG, CHANGELOG_KV]), batch=st.lists(st.tuples(VALUES, KEYS), max_size=8))
@example(KEYED, [(b'{"op":"d","before":null}', b'{"k":3}'), (b'{"op":"c","after":{"k":1}}', None)])
def test_a_batch_and_its_records_agree(schema: StreamSchema, batch: list[tuple[bytes | None, bytes | None]]) -> None:
    decoder = Decoder(schema, (*NAMES, "_tp_time", "_tp_sn"))
    table = records([value for value, _ in batch], [key for _, key in batch])

    assert read(decoder, table, singly=False) == read(decoder, table, singly=True)


@pytest.mark.parametrize("wrapped", [False, True])
def test_what_operations_say(wrapped: bool) -> None:
    old, new = {"k": 1, "name": "a"}, {"k": 1, "name": "b"}
    said = [envelope("r", None, old), envelope("u", old, new), envelope("d", new, None), envelope("c", None, old)]
    if wrapped:
        said = [b'{"schema":{"type":"struct"},"payload":%s}' % value for value in said]
    batch = records([*said[:3], None, said[3]], [b'{"k":1}'] * 5)

    def rows(schema: StreamSchema) -> list[tuple[Any, ...]]:
        decoded = Decoder(schema, ("k", "name", "_tp_sn")).decode(batch)
        assert decoded.rejected.num_rows == 0
        found = decoded.rows.to_pylist()
        assert [row[ARRIVAL] & 0xFF for row in found] == [row["_tp_sn"] for row in found]
        return [(row["_tp_sn"], row["name"], row[DELTA]) for row in found]

    assert rows(CHANGELOG) == [(0, "a", 1), (1, "a", -1), (1, "b", 1), (2, "b", -1), (4, "a", 1)]
    assert rows(KEYED) == [(0, "a", 1), (1, "b", 1), (2, "b", -1), (3, "anon", -1), (4, "a", 1)]


def test_what_no_row_can_be_made_of() -> None:
    said = [b'{"op":"t"}', b'{"op":"x"}', b'{"k":1}', envelope("c", None, None), envelope("u", None, {"k": 1}), b"{"]
    decoded = Decoder(CHANGELOG, ("k",)).decode(records(said))
    assert decoded.rows.num_rows == 0
    assert decoded.rejected.column("reason").to_pylist()[:5] == [
        'op "t" is a truncation: it names no row',
        "op is text 'x'; an envelope of Debezium has c, r, u or d",
        "op is missing; an envelope of Debezium has c, r, u or d",
        'op "c" without after',
        'op "u" without before: a changelog needs the whole old row (REPLICA IDENTITY FULL)',
    ]
    assert Decoder(KEYED, ("k",)).decode(records([said[4]])).rows.column("k").to_pylist() == [1]


def test_a_plain_batch_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"k": 1, "name": "a", "d": 1.25, "t": 1_700_000_000_000_000}
    decoder = Decoder(CHANGELOG, NAMES)
    monkeypatch.setattr(decoder, "_decode_each", None)
    decoded = decoder.decode(records([envelope("c", None, row), envelope("u", row, row), envelope("d", row, None)]))
    assert decoded.rows.column(DELTA).to_pylist() == [1, -1, 1, -1]
    assert len(set(map(repr, decoded.rows.select(NAMES).to_pylist()))) == 1


@pytest.mark.parametrize("kind", TYPES, ids=str)
@given(data=st.data())
def test_what_is_written_is_read_again(kind: pa.DataType, data: st.DataObject) -> None:
    keyed = data.draw(st.booleans())
    columns = (Column("k", pa.int32()), Column("v", kind))
    schema = StreamSchema("s", columns, Kind.UPSERT, ("k",), value=DEBEZIUM)
    if not keyed:
        schema = StreamSchema("s", columns, Kind.CHANGELOG, value=DEBEZIUM)
    cells = st.none() | values(kind)
    old, new = (data.draw(st.dictionaries(st.integers(0, 3), cells, max_size=4)) for _ in range(2))
    tables = [
        pa.table({"k": pa.array(list(rows), pa.int32()), "v": pa.array(list(rows.values()), kind)})
        for rows in (old, new)
    ]

    first = records_of(schema, Changes.of(tables[0]).table)
    change = Changes.concat([Changes.of(tables[0], -1), Changes.of(tables[1])]).consolidated()
    then = records_of(schema, change.table)
    batch = records([*first.values, *then.values], [*first.keys, *then.keys])
    decoded = Decoder(schema, ("k", "v")).decode(batch)

    assert decoded.rejected.to_pylist() == []
    found = content(schema, decoded.rows).select(["k", "v"]).sort_by("k")
    expected = Changes(normalised(Changes.of(tables[1]).table)).rows.sort_by("k")
    assert repr(found.to_pylist()) == repr(expected.to_pylist())


def test_a_row_that_becomes_another_is_one_record() -> None:
    table = pa.table({"k": pa.array([1, 1, 2, 3], pa.int32()), "name": ["a", "b", "x", "y"]})
    encoded = records_of(KEYED, Changes.with_deltas(table, np.array([-1, 1, -1, 1])).table)
    assert dict(zip(encoded.keys, encoded.values, strict=True)) == {
        b'{"k":1}': b'{"before":{"k":1,"name":"a"},"after":{"k":1,"name":"b"},"op":"u"}',
        b'{"k":2}': b'{"before":{"k":2,"name":"x"},"after":null,"op":"d"}',
        b'{"k":3}': b'{"before":null,"after":{"k":3,"name":"y"},"op":"c"}',
    }
