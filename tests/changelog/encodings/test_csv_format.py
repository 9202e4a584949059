"""CSV: what is read at once is what is read one by one, and what is written is read again."""

from __future__ import annotations

import csv
import io
import pickle
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dovetail.changelog.changes import DELTA, Changes
from dovetail.changelog.decode import Decoder
from dovetail.changelog.encode import records_of
from dovetail.changelog.schema import Column, Kind, RecordFormat, StreamSchema
from dovetail.changelog.values import normalised
from tests.changelog.records import TYPES, records, values

COLUMNS = (
    Column("k", pa.int32()),
    Column("name", pa.string(), default="'anon'"),
    Column("n", pa.uint64(), default="7"),
    Column("f", pa.float32()),
    Column("d", pa.decimal128(8, 2)),
    Column("t", pa.timestamp("us")),
    Column("b", pa.bool_()),
    Column("l", pa.list_(pa.int64())),
)
NAMES = tuple(column.name for column in COLUMNS)
CSV = RecordFormat("csv")
KINDS = tuple(
    StreamSchema("s", COLUMNS, kind, ("k",) if kind in (Kind.UPSERT, Kind.CHANGELOG_KV) else (), "t", value=CSV)
    for kind in Kind
)
NUMBERS = st.sampled_from(
    [
        "1",
        "-1",
        "+5",
        "007",
        "2147483648",
        "18446744073709551616",
        "1.0",
        "1.5",
        "1e3",
        "1e400",
        "nan",
        "inf",
        "-0",
        " 1",
        "1_0",
        ".5",
        "5.",
        "1.25",
        "1.255",
        "1234567.00",
        "٣",
    ]
)
TIMES = st.sampled_from(
    [
        "2026-01-31 12:00:00",
        "2026-01-31T12:00:00.5Z",
        "1700000000",
        "1700000000000",
        "1700000000.5",
        "soon",
        "2026-02-30",
    ]
)
TEXTS = st.sampled_from(
    [
        "",
        "abc",
        '"',
        "\\N",
        '"\\N"',
        '""',
        '"a,b"',
        '"a""b"',
        'a"b',
        '"a"b',
        '"a\nb"',
        "a\nb",
        "a\r",
        '"a\r\nb"',
        "é",
        "\ufeffx",
        "x\x00y",
        "true",
        "FALSE",
        "0",
    ]
)
LISTS = st.sampled_from(['"[1,2]"', "[]", '"[1,"', '"[1,null]"', '"{}"', "null"])
CELLS = NUMBERS | TIMES | TEXTS | LISTS
PLAIN = st.tuples(
    st.sampled_from(["1", "2", "", "\\N"]),
    st.sampled_from(["x", "", "\\N", '"a,b"']),
    st.sampled_from(["1", "", "\\N"]),
    st.sampled_from(["1.5", "0.1", ""]),
    st.sampled_from(["1.25", "12", ""]),
    TIMES,
    st.sampled_from(["true", "0", ""]),
    st.sampled_from(['"[1,2]"', "[]", ""]),
)
LINES = (
    (PLAIN | st.tuples(*[CELLS] * len(NAMES)))
    .flatmap(lambda cells: st.sampled_from([cells, (*cells, "1"), (*cells, "-1"), (*cells, "2"), cells[:-1]]))
    .map(lambda cells: ",".join(cells).encode())
)
VALUES = st.one_of(LINES, LINES, st.binary(max_size=6), st.sampled_from([b"", b"\n", b",", None]))
KEYS = st.sampled_from([None, b"7", b'{"k":3}', b"x"])


def read(decoder: Decoder, batch: pa.Table, *, singly: bool) -> str:
    decoded = decoder.decode_singly(batch) if singly else decoder.decode(batch)
    return repr((decoded.rows.to_pylist(), decoded.rejected.to_pylist()))


@given(schema=st.sampled_from(KINDS), batch=st.lists(st.tuples(VALUES, KEYS), max_size=8))
@example(KINDS[0], [(b'"a', None), (b'b"', None)])
@example(KINDS[0], [(b"1,\xef\xbb\xbfx,,,,,,", None), (b"\xef\xbb\xbf1,x,,,,,,", None)])
def test_a_batch_and_its_records_agree(schema: StreamSchema, batch: list[tuple[bytes | None, bytes | None]]) -> None:
    decoder = Decoder(schema, (*NAMES, "_tp_time", "_tp_sn"))
    table = records([value for value, _ in batch], [key for _, key in batch])

    assert read(decoder, table, singly=False) == read(decoder, table, singly=True)


@pytest.mark.parametrize("kind", TYPES, ids=str)
@given(data=st.data())
def test_what_is_written_is_read_again(kind: pa.DataType, data: st.DataObject) -> None:
    delimiter = data.draw(st.sampled_from([",", ";", "|", "tab"]))
    written: list[Any] = data.draw(st.lists(st.none() | values(kind), min_size=1, max_size=5))
    column = pa.array(written, kind)
    schema = StreamSchema(
        "s",
        (Column("a", pa.int32()), Column("v", kind)),
        data.draw(st.sampled_from([Kind.APPEND, Kind.CHANGELOG])),
        value=RecordFormat("csv", (("delimiter", delimiter),)),
    )
    rows = Changes.of(pa.table({"a": pa.array(range(len(column)), pa.int32()), "v": column})).table

    encoded = records_of(schema, rows)
    decoded = Decoder(schema, ("a", "v")).decode(records(encoded.values, encoded.keys))

    assert decoded.rejected.to_pylist() == []
    assert repr(decoded.rows.select(["a", "v"]).to_pylist()) == repr(normalised(rows).select(["a", "v"]).to_pylist())
    assert decoded.rows.column(DELTA).to_pylist() == [1] * len(column)


def test_a_wrong_line_goes_alone() -> None:
    lines = [b"%d,x,1,0.5,1.25,2026-01-31 12:00:00,true,[]" % n for n in range(500)]
    lines[7], lines[9], lines[11], lines[13] = b"1,2", b"x,y,1,1,1,,,", b'1,"y,1,1,1,,,', b"\xff,,,,,,,"
    decoded = Decoder(KINDS[0], NAMES).decode(records(lines))
    assert decoded.rows.num_rows == 496
    assert dict(zip(decoded.rejected["offset"].to_pylist(), decoded.rejected["reason"].to_pylist(), strict=True)) == {
        7: "2 fields for 8 columns",
        9: "column k: expected int32, found text 'x'",
        11: "malformed CSV: several lines, or a quote inside a field or without its end",
        13: "the value is not UTF-8",
    }


def test_what_a_field_lacks() -> None:
    schema = StreamSchema("s", COLUMNS[:3], value=CSV)
    decoded = Decoder(schema, ("k", "name", "n")).decode(records([b",,", b"\\N,\\N,\\N", b'"","\\N",""']))
    assert [tuple(row[name] for name in ("k", "name", "n")) for row in decoded.rows.to_pylist()] == [
        (None, "", 7),
        (None, None, None),
        (None, "\\N", 7),
    ]


NAMES_OF_COLUMNS = st.lists(
    st.sampled_from(["id", "a,b", 'a"b', "naïve", "a\tb", " "]), min_size=1, max_size=3, unique=True
)


@pytest.mark.parametrize("delimiter", [",", ";", "|", "tab"])
@given(
    names=NAMES_OF_COLUMNS, kind=st.sampled_from([Kind.APPEND, Kind.CHANGELOG]), end=st.sampled_from(["", "\n", "\r\n"])
)
def test_a_line_of_the_names_is_no_record(delimiter: str, names: list[str], kind: Kind, end: str) -> None:
    columns = tuple(Column(name, pa.string()) for name in names)
    sign = "\t" if delimiter == "tab" else delimiter
    options = (("delimiter", delimiter), ("without_header", "false"))
    schema = StreamSchema("s", columns, kind, value=RecordFormat("csv", options))
    lines = io.StringIO()
    csv.writer(lines, delimiter=sign, lineterminator=end).writerow(names)
    quoted = sign.join('"' + name.replace('"', '""') + '"' for name in names) + end
    row = sign.join(["x"] * len(names)).encode()
    header = lines.getvalue().encode()
    batch = records([header, row, quoted.encode(), b"\xef\xbb\xbf" + header, row])
    for decoder in (Decoder(schema, tuple(names)), pickle.loads(pickle.dumps(Decoder(schema, tuple(names))))):
        for found in (decoder.decode(batch), decoder.decode_singly(batch)):
            assert found.rows.select(names).to_pylist() == [dict.fromkeys(names, "x")] * 2
            assert found.rejected.num_rows == 0
    plain = replace(schema, value=RecordFormat("csv", options[:1]))
    taken = Decoder(plain, tuple(names)).decode(batch)
    assert taken.rows.num_rows + taken.rejected.num_rows == 5
