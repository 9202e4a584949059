"""What ``encode`` writes, ``decode`` reads: an output topic can be the input of another query."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.changelog.changes import DELTA, Changes
from dovetail.changelog.decode import Decoder
from dovetail.changelog.encode import encode
from dovetail.changelog.schema import ARRIVAL, Column, Kind, StreamSchema
from dovetail.changelog.topic_content import content
from tests.changelog.records import TYPES, records, values
from tests.tries import tries


def read(schema: StreamSchema, rows: pa.Table, *, key: tuple[tuple[str, str], ...], form: str) -> pa.Table:
    """The rows that a reader of the output of ``rows`` decodes."""
    columns = tuple(column.name for column in schema.columns)
    written = encode(rows, columns, key, updating=schema.kind is not Kind.APPEND, format=form)
    decoded = Decoder(schema, columns).decode(records(written.values, written.keys))
    assert decoded.rejected.to_pylist() == []
    return decoded.rows


@pytest.mark.parametrize("kind", TYPES, ids=str)
@settings(max_examples=tries(20))
@given(data=st.data())
def test_every_type_reads_back_the_same(kind: pa.DataType, data: st.DataObject) -> None:
    column = pa.array(data.draw(st.lists(st.none() | values(kind), max_size=6)), kind)
    schema = StreamSchema("s", (Column("v", kind), Column("n", pa.int64())), Kind.APPEND)
    rows = pa.table({"v": column, "n": pa.array(range(len(column)), pa.int64())})

    back = read(schema, Changes.of(rows).table, key=(("n", "n"),), form="changelog")

    assert back.drop_columns([ARRIVAL, DELTA]).to_pylist() == rows.to_pylist()
    assert back.schema.field("v").type == kind


ROWS = st.lists(
    st.tuples(st.none() | st.integers(0, 3), st.sampled_from(["a", "b", None]), st.sampled_from([-2, -1, 1, 2])),
    max_size=12,
)


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    names = ("k", "v", DELTA)
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    types = (pa.int64(), pa.string(), pa.int32())
    return pa.table([pa.array(column, kind) for column, kind in zip(columns, types, strict=True)], names=list(names))


def multiset(rows: pa.Table) -> dict[Any, int]:
    plain = rows.drop_columns([ARRIVAL]) if ARRIVAL in rows.column_names else rows
    return {
        tuple(row[name] for name in row if name != DELTA): row[DELTA]
        for row in Changes(plain).consolidated().table.to_pylist()
    }


@given(rows=ROWS)
def test_a_changelog_reads_back_as_the_same_multiset(rows: list[tuple[Any, ...]]) -> None:
    schema = StreamSchema("s", (Column("k", pa.int64()), Column("v", pa.string())), Kind.CHANGELOG)

    assert multiset(read(schema, table(rows), key=(("k", "k"),), form="changelog")) == multiset(table(rows))


@given(rows=ROWS)
def test_in_a_changelog_the_rows_of_a_key_are_adjacent_and_retractions_come_first(rows: list[tuple[Any, ...]]) -> None:
    schema = StreamSchema("s", (Column("k", pa.int64()), Column("v", pa.string())), Kind.CHANGELOG)
    back = read(schema, table(rows), key=(("k", "k"),), form="changelog").to_pylist()

    if any(row[2] < 0 for row in rows):
        order = list(dict.fromkeys(row[0] for row in rows))
        places = [(order.index(row["k"]), row[DELTA]) for row in back]
        assert places == sorted(places)
    assert all(abs(row[DELTA]) == 1 for row in back)


@given(steps=st.lists(st.dictionaries(st.integers(0, 3), st.none() | st.sampled_from("abc"), max_size=4), max_size=4))
def test_an_upsert_topic_reads_back_as_the_last_row_of_each_key(steps: list[dict[int, str | None]]) -> None:
    schema = StreamSchema("s", (Column("k", pa.int64()), Column("v", pa.string())), Kind.UPSERT, ("k",))
    held: dict[int, str] = {}
    keys: list[bytes | None] = []
    written: list[bytes | None] = []
    for step in steps:
        changes = [(key, held[key], -1) for key in step if key in held]
        changes += [(key, value, 1) for key, value in step.items() if value is not None]
        held = {key: value for key, value in {**held, **step}.items() if value is not None}
        encoded = encode(table(changes), ("k", "v"), (("k", "k"),), updating=True, format="upsert")
        assert len(encoded) <= len(step)
        keys += encoded.keys
        written += encoded.values

    decoded = Decoder(schema, ("k", "v")).decode(records(written, keys))
    rows = content(schema, decoded.rows).to_pylist()
    assert {row["k"]: row["v"] for row in rows} == held
    assert decoded.rejected.num_rows == 0
