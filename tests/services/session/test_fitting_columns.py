"""Other columns of a view: a value of the narrower type is the same value where a reader has the wider one."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.changelog.changes import Changes
from dovetail.changelog.decode import Decoder
from dovetail.changelog.encode import encode
from dovetail.changelog.formats import decimal_text
from dovetail.changelog.schema import Column, Kind, RecordFormat, StreamSchema
from dovetail.services.session.alter.fitting_columns import column_changes, holds, unfit_columns
from dovetail.sql.relations import Stream
from dovetail.sql.syntax.rules import Rules
from tests.changelog.records import TYPES, records, values
from tests.tries import tries

KINDS = [*TYPES, pa.int16(), pa.uint8(), pa.uint32(), pa.decimal128(12, 2), pa.decimal128(12, 4), pa.decimal128(10, 4)]
WIDER = [(kind, wider) for kind, wider in product(KINDS, KINDS) if kind != wider and holds(wider, kind)]


def view(**kinds: pa.DataType) -> Stream:
    columns = tuple(Column(name, kind) for name, kind in kinds.items())
    return Stream(StreamSchema("v", columns, Kind.CHANGELOG, ("k",) if "k" in kinds else ()), "v", Rules.RISINGWAVE)


@pytest.mark.parametrize(("kind", "wider"), WIDER, ids=str)
@settings(max_examples=tries(20))
@given(data=st.data())
def test_a_wider_type_reads_what_the_narrower_one_wrote(
    kind: pa.DataType, wider: pa.DataType, data: st.DataObject
) -> None:
    column = pa.chunked_array([pa.array(data.draw(st.lists(st.none() | values(kind), max_size=6)), kind)])
    written = encode(Changes.of(pa.table({"v": column})).table, ("v",), (), updating=True)
    read = Decoder(view(v=wider).schema, ("v",)).decode(records(written.values))
    assert not read.rejected.num_rows
    assert read.rows.column("v") == decimal_text.cast(column, wider)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_type_holds_itself(kind: pa.DataType) -> None:
    assert holds(kind, kind)
    assert not any(holds(kind, wider) for narrow, wider in WIDER if narrow == kind)


def test_columns_come_and_go_and_become_wider() -> None:
    before = view(k=pa.int32(), gone=pa.string(), n=pa.int32(), price=pa.decimal128(10, 2))
    after = view(n=pa.int64(), k=pa.int32(), new=pa.date32(), price=pa.decimal128(12, 4))
    assert unfit_columns(before, after) == ""
    assert list(column_changes(before, after)) == [
        "- gone string",
        "~ n int32 -> int64",
        "+ new date",
        "~ price decimal(10, 2) -> decimal(12, 4)",
    ]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (view(k=pa.int32()), view(k=pa.int16()), "~ k int32 -> int16"),
        (view(v=pa.decimal128(10, 2)), view(v=pa.decimal128(10, 4)), "~ v decimal(10, 2) -> decimal(10, 4)"),
        (view(v=pa.int64()), view(v=pa.uint64()), "~ v int64 -> uint64"),
        (view(v=pa.uint32()), view(v=pa.int32()), "~ v uint32 -> int32"),
        (view(v=pa.string()), view(v=pa.int32()), "~ v string -> int32"),
        (view(v=pa.int32()), view(v=pa.float64()), "~ v int32 -> float64"),
        (view(k=pa.int32()), view(v=pa.int32()), "another key"),
    ],
)
def test_what_one_reader_cannot_read_is_named(before: Stream, after: Stream, said: str) -> None:
    assert said in unfit_columns(before, after)


@pytest.mark.parametrize("kind", ["csv", "avro"])
def test_records_that_are_not_json_keep_their_columns(kind: str) -> None:
    before, after = (
        replace(one, schema=replace(one.schema, value=RecordFormat(kind)))
        for one in (view(v=pa.int32()), view(v=pa.int32(), n=pa.int32()))
    )
    assert unfit_columns(before, before) == ""
    assert unfit_columns(before, after) == "+ n int32"
