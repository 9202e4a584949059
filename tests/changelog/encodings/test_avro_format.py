"""Avro: what is written comes back, a batch reads as its records one by one, and what is broken says why."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.changelog.decode import Decoded, Decoder
from dovetail.changelog.encode import Forms
from dovetail.changelog.encodings.avro.generated_schema import text_of
from dovetail.changelog.encodings.interface import SchemaDefinition
from dovetail.changelog.encodings.schema_id_framing import wire
from dovetail.changelog.schema import Column, Kind, RecordFormat, StreamSchema
from dovetail.changelog.values import normalised
from tests.changelog.encodings.avro_records import Schemas, as_records, avro_stream, encoded, record_of, written_by
from tests.nasty import COLUMNS, NESTED
from tests.tries import tries

KINDS = [kind for kind in (*COLUMNS, *NESTED) if kind != pa.large_string()]


def decoded(schemas: Schemas, values: list[bytes | None], **columns: pa.DataType) -> Decoded:
    """By the batch, and known to be the same one by one."""
    decoder = Decoder(avro_stream(**columns), tuple(columns), schemas)
    batch, singly = decoder.decode(as_records(values)), decoder.decode_singly(as_records(values))
    # As texts, in which NaN is NaN.
    assert repr(batch.rows.to_pylist()) == repr(singly.rows.to_pylist())
    assert batch.rejected.equals(singly.rejected)
    return batch


def reasons(found: Decoded) -> list[str]:
    return [str(one) for one in found.rejected.column("reason").to_pylist()]


@given(st.data())
@settings(max_examples=tries(75), deadline=None)
def test_what_is_written_comes_back(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4))
    rows = data.draw(st.integers(0, 5))
    values = [data.draw(st.lists(st.none() | (COLUMNS | NESTED)[kind], min_size=rows, max_size=rows)) for kind in kinds]
    table = pa.table(
        [pa.array(one, kind) for one, kind in zip(values, kinds, strict=True)], names=list("abcd")[: len(kinds)]
    )
    schemas = Schemas()
    schemas.known[7] = SchemaDefinition("AVRO", text_of(table.schema, "t"))
    written = Forms(written_by(7), schemas=schemas).values(table)
    back = decoded(schemas, written, **{one.name: one.type for one in table.schema})
    assert reasons(back) == []
    assert repr(back.rows.select(table.column_names).to_pylist()) == repr(normalised(table).to_pylist())


UTC = dt.UTC
MS, US = pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
ENUM = {"type": "enum", "name": "e", "symbols": ["A", "B"]}
LOGICAL: list[tuple[Any, Any, pa.DataType, Any]] = [
    (DECIMAL, Decimal("-1.25"), pa.decimal128(9, 2), None),
    (DECIMAL | {"type": "fixed", "name": "f", "size": 5}, Decimal("-1.25"), pa.decimal128(9, 2), None),
    ({"type": "long", "logicalType": "timestamp-millis"}, dt.datetime(2026, 1, 1, tzinfo=dt.UTC), MS, None),
    ({"type": "long", "logicalType": "timestamp-micros"}, dt.datetime(1926, 1, 1, tzinfo=dt.UTC), US, None),
    ({"type": "long", "logicalType": "timestamp-micros"}, dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, dt.UTC),
     MS, dt.datetime(1969, 12, 31, 23, 59, 59, 999_000, dt.UTC)),
    ({"type": "int", "logicalType": "date"}, dt.date(1, 1, 1), pa.date32(), None),
    ({"type": "int", "logicalType": "time-millis"}, dt.time(12, 30), pa.time64("us"), None),
    ({"type": "long", "logicalType": "time-micros"}, dt.time(12, 30, 0, 5), pa.time64("us"), None),
    ({"type": "string", "logicalType": "uuid"}, uuid.UUID(int=5), pa.string(), str(uuid.UUID(int=5))),
    (ENUM, "B", pa.string(), None),
    ({"type": "array", "items": ENUM}, ["B", "A"], pa.list_(pa.string()), None),
    ({"type": "map", "values": "int"}, {"a": 1}, pa.map_(pa.string(), pa.int64()), [("a", 1)]),
    (record_of(("x", "int"), ("y", {"type": "map", "values": "string"})), {"x": 1, "y": {"k": "v"}},
     pa.struct([("y", pa.map_(pa.string(), pa.string())), ("z", pa.int32())]), {"y": [("k", "v")], "z": None}),
    ("int", 5, pa.float64(), 5.0),
    ("int", 5, pa.decimal128(9, 2), Decimal("5.00")),
    ("long", -(2**63), pa.decimal128(19, 0), Decimal(-(2**63))),
    ("bytes", b"\xc3\xa9", pa.string(), "é"),
    ("string", "é", pa.binary(), "é".encode()),
    ("null", None, pa.int64(), None),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "given_value", "column", "expected"), LOGICAL)
@pytest.mark.parametrize("form", ["plain", "null first", "null last", "beside a union"])
def test_each_type_has_its_column(kind: Any, given_value: Any, column: pa.DataType, expected: Any, form: str) -> None:
    schema = {"null first": ["null", kind], "null last": [kind, "null"]}.get(form, kind)
    if kind == "null" and "null " in form:
        return
    more = [("u", ["int", "string"])] if form == "beside a union" else []
    root = {"type": "record", "name": "root", "fields": [{"name": "v", "type": schema}]}
    root["fields"] += [{"name": name, "type": one} for name, one in more]  # type: ignore[operator]
    schemas = Schemas()
    schema_id = schemas.add(root)
    values: list[bytes | None] = [encoded(schema_id, root, {"v": given_value, "u": "x"}) for _ in range(3)]
    if "null " in form:
        values.append(encoded(schema_id, root, {"v": None, "u": 1}))
    found = decoded(schemas, values, v=column)
    assert reasons(found) == []
    wanted = [given_value if expected is None else expected] * 3 + [None] * ("null " in form)
    assert found.rows.column("v").to_pylist() == wanted


def test_schemas_follow_each_other_in_one_batch() -> None:
    schemas = Schemas()
    old, new = record_of(("a", "int"), ("gone", "string")), record_of(("more", "double"), ("a", "long"))
    first, second = schemas.add(old), schemas.add(new)
    values = [encoded(first, old, {"a": 1, "gone": "x"}), encoded(second, new, {"a": 2**40, "more": 1.5})] * 2
    found = decoded(schemas, list(values), a=pa.int64(), more=pa.float64())
    assert found.rows.select(["a", "more"]).to_pylist() == [{"a": 1, "more": None}, {"a": 2**40, "more": 1.5}] * 2


@pytest.mark.parametrize(
    ("kind", "value", "column", "reason"),
    [
        ("string", "x", pa.int64(), "schema 1: column a: it is string, and the column int64"),
        (["int", "string"], 1, pa.int64(), "schema 1: column a: it is a union of several types"),
        ("long", 2**40, pa.int32(), "column a: "),
        ("long", 2**40, pa.decimal128(9, 2), "column a: "),
        ("long", 5, pa.timestamp("ms", "UTC"), "schema 1: column a: it is long, and the column time"),
        ({"type": "array", "items": "null"}, [], pa.list_(pa.int64()), "schema 1: it has an array of null"),
    ],
)
def test_a_value_that_does_not_fit_is_a_dead_letter(kind: Any, value: Any, column: pa.DataType, reason: str) -> None:
    schemas, root = Schemas(), record_of(("a", kind))
    schema_id = schemas.add(root)
    found = decoded(schemas, [encoded(schema_id, root, {"a": value})], a=column)
    assert found.rows.num_rows == 0
    assert reasons(found)[0].startswith(reason)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "does not begin with 00 and the id of a schema, but with nothing"),
        (b"{}", "but with 7b 7d"),
        (b"\0\0\0\0", "but with 00 00 00 00"),
        (wire.head(99) + b"\2", "the schema registry has no schema 99"),
        (wire.head(1), "is no record of its schema: it ends too early"),
        (wire.head(1) + b"\2\2", "has 1 byte more than a record"),
        (wire.head(2) + b"\2", "schema 2: it is of JSON, and the stream has AVRO"),
        (wire.head(3) + b"\2", "schema 3: it is string; a record is expected"),
        (wire.head(4) + b"\2", "schema 4: there is no type nowhere"),
    ],
)
def test_broken_records_stand_in_nobodys_way(value: bytes, reason: str) -> None:
    schemas = Schemas()
    root = record_of(("a", "long"))
    for schema, kind in ((root, "AVRO"), ("{}", "JSON"), ("string", "AVRO"), (record_of(("a", "nowhere")), "AVRO")):
        schemas.add(schema, kind)
    good = encoded(1, root, {"a": 5})
    found = decoded(schemas, [good, value, good], a=pa.int64())
    assert found.rows.column("a").to_pylist() == [5, 5]
    assert [reason in one for one in reasons(found)] == [True]


def test_a_recursive_type_beside_the_columns_is_read() -> None:
    node = {"type": "record", "name": "node", "fields": [{"name": "next", "type": ["null", "node"]}]}
    root = {"type": "record", "name": "root", "fields": [{"name": "a", "type": "int"}, {"name": "n", "type": node}]}
    schemas = Schemas()
    schema_id = schemas.add(root)
    value = encoded(schema_id, root, {"a": 3, "n": {"next": {"next": None}}})
    assert decoded(schemas, [value, value], a=pa.int32()).rows.column("a").to_pylist() == [3, 3]


@pytest.mark.parametrize("depth", [200, 5_000, 300_000])
def test_a_record_that_is_nested_too_deeply_is_rejected_alone(depth: int) -> None:
    schemas = Schemas()
    schema_id = schemas.add(record_of(("n", ["null", "r"]), ("a", "long")))
    good, deep = (wire.head(schema_id) + b"\2" * levels + b"\0" + b"\2" * (levels + 1) for levels in (50, depth))
    found = decoded(schemas, [good, deep, good], a=pa.int64())
    assert found.rows.column("a").to_pylist() == [1, 1]
    assert reasons(found) == ["the value is nested deeper than 200 levels"]


@pytest.mark.parametrize(
    "nothing",
    [
        "null",
        {"type": "fixed", "name": "f", "size": 0},
        {"type": "record", "name": "e", "fields": []},
        {"type": "record", "name": "e", "fields": [{"name": "x", "type": "null"}]},
        {"type": "record", "name": "e", "fields": [{"name": "x", "type": {"type": "fixed", "name": "f", "size": 0}}]},
    ],
    ids=str,
)
def test_an_array_of_what_takes_no_bytes_is_of_no_schema(nothing: object) -> None:
    schemas = Schemas()
    schema_id = schemas.add(record_of(("l", {"type": "array", "items": nothing}), ("a", "long")))
    found = decoded(schemas, [wire.head(schema_id) + b"\xfe\xff\xff\xff\x0f\0\2"], a=pa.int64())
    assert [one.endswith("whose elements take no bytes") for one in reasons(found)] == [True]


FUZZED = record_of(
    ("a", "long"),
    ("t", ["null", "string"]),
    ("l", {"type": "array", "items": ["null", "int"]}),
    ("e", {"type": "enum", "name": "e", "symbols": ["A", "B"]}),
    ("d", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.lists(st.tuples(st.integers(0, 40), st.integers(0, 255)), max_size=3),
            st.integers(0, 3),
        ),
        min_size=1,
        max_size=6,
    )
)
@settings(max_examples=tries(100), deadline=None)
def test_random_bytes_are_rows_or_dead_letters(cuts: list[Any]) -> None:
    schemas = Schemas()
    schema_id = schemas.add(FUZZED)
    values: list[bytes | None] = []
    for number, changes, kept in cuts:
        record = {"a": number, "t": "é" * number, "l": [1, None], "e": "B", "d": Decimal("-1.25")}
        value = bytearray(encoded(schema_id, FUZZED, record))
        for place, byte in changes:
            value[5 + place % (len(value) - 5)] = byte
        values.append(bytes(value if kept else value[:-1]))
    kinds = {"a": pa.int64(), "t": pa.string(), "l": pa.list_(pa.int32()), "e": pa.string(), "d": pa.decimal128(9, 2)}
    decoder = Decoder(avro_stream(**kinds), tuple(kinds), schemas)
    batch, singly = decoder.decode(as_records(values)), decoder.decode_singly(as_records(values))
    assert batch.rows.num_rows + batch.rejected.num_rows == len(values)
    rows = [repr(row) for row in batch.rows.to_pylist()]
    assert [row for row in singly.rows.to_pylist() if repr(row) not in rows] == []


KEY_KINDS = [kind for kind in COLUMNS if not pa.types.is_floating(kind) and kind != pa.large_string()]


@given(st.data())
@settings(max_examples=tries(40), deadline=None)
def test_keys_name_their_schema_too(data: st.DataObject) -> None:
    """Values without the primary key, and tombstones: the row is that of the key, by the batch and one by one."""
    kinds = data.draw(st.lists(st.sampled_from(KEY_KINDS), min_size=1, max_size=3))
    names = list("abc")[: len(kinds)]
    rows = data.draw(st.integers(1, 5))
    columns = [pa.array([data.draw(COLUMNS[kind]) for _ in range(rows)], kind) for kind in kinds]
    keys = pa.table(columns, names=names)
    schemas = Schemas()
    schemas.known[3] = SchemaDefinition("AVRO", text_of(keys.schema, "k"))
    stream = StreamSchema(
        "s",
        tuple(Column(name, kind) for name, kind in zip([*names, "v"], [*kinds, pa.int64()], strict=True)),
        kind=Kind.UPSERT,
        primary_key=tuple(names),
        key=written_by(3),
    )
    written = Forms(key=written_by(3), schemas=schemas).keys(keys)
    values = [None if data.draw(st.booleans()) else b'{"v":1}' for _ in range(rows)]
    records = as_records(values)
    records = records.set_column(records.schema.get_field_index("key"), "key", pa.array(written, pa.binary()))
    decoder = Decoder(stream, (*names, "v"), schemas)
    batch, singly = decoder.decode(records), decoder.decode_singly(records)
    assert reasons(batch) == reasons(singly) == []
    for found in (batch, singly):
        assert repr(found.rows.select(names).to_pylist()) == repr(normalised(keys).to_pylist())
        assert found.rows.column("__delta").to_pylist() == [-1 if value is None else 1 for value in values]


@pytest.mark.parametrize(("schema", "key"), [("long", 5), (record_of(("id", "long"), ("more", "string")), None)])
def test_a_key_may_be_the_bare_value_or_hold_more(schema: Any, key: Any) -> None:
    schemas = Schemas()
    schema_id = schemas.add(schema)
    made = encoded(schema_id, schema, {"id": 5, "more": "x"} if key is None else key)
    columns = (Column("id", pa.int64()), Column("v", pa.int64()))
    stream = StreamSchema("s", columns, kind=Kind.UPSERT, primary_key=("id",), key=RecordFormat("avro"))
    records = as_records([b'{"v":1}', None, None])
    keys = [made, made, made[:-1]]
    records = records.set_column(records.schema.get_field_index("key"), "key", pa.array(keys, pa.binary()))
    decoder = Decoder(stream, ("id", "v"), schemas)
    for found in (decoder.decode(records), decoder.decode_singly(records)):
        assert found.rows.select(["id", "v", "__delta"]).to_pylist() == [
            {"id": 5, "v": 1, "__delta": 1},
            {"id": 5, "v": None, "__delta": -1},
        ]
        assert reasons(found)[0].startswith("the key is no record of its schema")


@given(st.data())
@settings(max_examples=tries(40), deadline=None)
def test_envelopes_of_debezium(data: st.DataObject) -> None:
    """By the batch as one by one, with what the rows lack, and NULLs that are none of a DEFAULT."""
    schemas = Schemas()
    row = record_of(("id", "long"), ("note", ["null", "string"]), ("price", ["null", DECIMAL]), ("e", ["null", ENUM]))
    wide = {"type": "record", "name": "wide", "fields": [
        {"name": "op", "type": "string"}, {"name": "before", "type": ["null", row]},
        {"name": "after", "type": ["null", "r"]}, {"name": "ts_ms", "type": "long"},
    ]}  # fmt: skip
    schema_id = schemas.add(wide)
    rows = st.none() | st.fixed_dictionaries(
        {
            "id": st.integers(0, 3),
            "note": st.sampled_from([None, "", "x"]),
            "price": st.sampled_from([None, Decimal("-1.25")]),
            "e": st.sampled_from([None, "A", "B"]),
        }
    )
    ops = st.sampled_from(["c", "r", "u", "d", "t", ""])
    envelopes = data.draw(
        st.lists(st.fixed_dictionaries({"op": ops, "before": rows, "after": rows, "ts_ms": st.just(1)}), max_size=6)
    )
    columns = (
        Column("id", pa.int64()),
        Column("note", pa.string(), default="none"),
        Column("price", pa.decimal128(9, 2)),
        Column("e", pa.string()),
        Column("more", pa.int32(), default="7"),
    )
    names = tuple(column.name for column in columns)
    kind = data.draw(st.sampled_from([Kind.UPSERT, Kind.CHANGELOG]))
    form = RecordFormat("avro", envelope="debezium")
    stream = StreamSchema("s", columns, kind, ("id",) if kind is Kind.UPSERT else (), value=form)
    decoder = Decoder(stream, names, schemas)
    batch = as_records([encoded(schema_id, wide, one) for one in envelopes])
    found, singly = decoder.decode(batch), decoder.decode_singly(batch)
    assert repr(found.rows.to_pylist()) == repr(singly.rows.to_pylist())
    assert reasons(found) == reasons(singly)
    came = [one["after"] for one in envelopes if one["op"] in ("c", "r", "u") and one["after"]]
    if kind is Kind.UPSERT:
        taken = [line for line in found.rows.to_pylist() if line["__delta"] == 1]
        assert [{name: line[name] for name in names[:-1]} for line in taken] == came
        assert all(line["more"] == 7 for line in taken)
