"""Raw: the bytes of a value, or of a key, are a column."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.changelog.changes import DELTA, Changes
from dovetail.changelog.decode import Decoder
from dovetail.changelog.encode import records_of
from dovetail.changelog.schema import Column, Kind, RecordFormat, StreamSchema
from dovetail.changelog.values import normalised
from tests.changelog.records import TYPES, records, values

RAW = RecordFormat("raw")
LINE = StreamSchema("s", (Column("line", pa.string()),), value=RAW)
KEYED = StreamSchema(
    "s", (Column("k", pa.int32()), Column("body", pa.binary())), Kind.UPSERT, ("k",), value=RAW, key=RAW
)


@given(st.lists(st.binary(max_size=5), max_size=6))
def test_a_batch_and_its_records_agree(found: list[bytes]) -> None:
    decoder, batch = Decoder(LINE, ("line", "_tp_time", "_tp_sn")), records(found)
    decoded, singly = decoder.decode(batch), decoder.decode_singly(batch)
    assert decoded.rows.equals(singly.rows)
    assert decoded.rejected.equals(singly.rejected)


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()], ids=str)
@given(data=st.data())
def test_what_is_written_is_read_again(kind: pa.DataType, data: st.DataObject) -> None:
    written: list[Any] = data.draw(st.lists(values(kind), min_size=1, max_size=5))
    schema = StreamSchema("s", (Column("v", kind),), value=RAW)
    rows = Changes.of(pa.table({"v": pa.array(written, kind)})).table
    decoded = Decoder(schema, ("v",)).decode(records(records_of(schema, rows).values))
    assert decoded.rows.column("v").to_pylist() == written


def test_a_key_beside_it() -> None:
    rows = Changes.with_deltas(
        pa.table({"k": pa.array([1, 2], pa.int32()), "body": [b"{", b"gone"]}), pa.array([1, -1]).to_numpy()
    ).table
    encoded = records_of(KEYED, rows)
    assert list(zip(encoded.keys, encoded.values, strict=True)) == [(b"1", b"{"), (b"2", None)]

    batch = records([*encoded.values, b"v", b"v"], [*encoded.keys, b"x", None])
    for decode in (Decoder(KEYED, ("k", "body")).decode, Decoder(KEYED, ("k", "body")).decode_singly):
        decoded = decode(batch)
        assert [(row["k"], row["body"], row[DELTA]) for row in decoded.rows.to_pylist()] == [
            (1, b"{", 1),
            (2, None, -1),
        ]
        assert decoded.rejected.column("reason").to_pylist() == [
            "column k: expected int32, found text 'x'",
            "primary key column k is missing",
        ]


@pytest.mark.parametrize("kind", [kind for kind in TYPES if not pa.types.is_nested(kind)], ids=str)
@given(data=st.data())
def test_every_type_of_a_key_is_read_again(kind: pa.DataType, data: st.DataObject) -> None:
    written = data.draw(st.lists(values(kind), min_size=1, max_size=5))
    columns = (Column("k", kind), Column("v", pa.int32()))
    schema = StreamSchema("s", columns, Kind.UPSERT, ("k",), key=RAW)
    rows = normalised(
        Changes.of(pa.table({"k": pa.array(written, kind), "v": pa.nulls(len(written), pa.int32())})).table
    )

    encoded = records_of(schema, rows)
    for decode in (Decoder(schema, ("k", "v")).decode, Decoder(schema, ("k", "v")).decode_singly):
        decoded = decode(records([b"{}"] * len(written), encoded.keys))
        assert decoded.rejected.to_pylist() == []
        assert repr(decoded.rows.column("k").to_pylist()) == repr(rows.column("k").to_pylist())


@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize("cell", [b"1" * 1_000_000 + b"x", b"1" * 1_000_000, b"." + b"0" * 1_000_000 + b"-"])
def test_a_long_number_takes_time_that_grows_with_it(kind: pa.DataType, cell: bytes) -> None:
    decoder = Decoder(StreamSchema("s", (Column("v", kind),), value=RAW), ("v",))
    began = time.process_time()
    decoded = decoder.decode(records([cell]))
    assert time.process_time() - began < 2
    assert decoded.rows.num_rows + decoded.rejected.num_rows == 1
