"""JSON behind the id of its schema: it reads as JSON does, what is written keeps to the schema."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.changelog.changes import DELTA
from dovetail.changelog.decode import Decoded, Decoder
from dovetail.changelog.encode import Forms
from dovetail.changelog.encodings.interface import SchemaDefinition
from dovetail.changelog.encodings.json_schema.schema_parser import JsonSchemaParser
from dovetail.changelog.encodings.schema_id_framing import wire
from dovetail.changelog.encodings.schema_id_framing.reader import SchemaMisfit
from dovetail.changelog.encodings.schema_id_framing.subjects import SUBJECT
from dovetail.changelog.encodings.settings import value_format
from dovetail.changelog.errors import SqlError
from dovetail.changelog.schema import Column, Kind, RecordFormat, StreamSchema
from tests.changelog.encodings.avro_records import Schemas, as_records
from tests.nasty import COLUMNS, NESTED
from tests.tries import tries

KINDS = [kind for kind in (*COLUMNS, *NESTED) if kind != pa.large_string()]
LANGUAGE = JsonSchemaParser()
FORM = RecordFormat("json_schema")


def stream(kind: str, columns: dict[str, pa.DataType]) -> StreamSchema:
    return StreamSchema("s", tuple(Column(*one) for one in columns.items()), value=RecordFormat(kind))


def decoded(schemas: Schemas, values: list[bytes | None], columns: dict[str, pa.DataType]) -> Decoded:
    """By the batch, and known to be the same one by one."""
    decoder = Decoder(stream("json_schema", columns), tuple(columns), schemas)
    batch, singly = decoder.decode(as_records(values)), decoder.decode_singly(as_records(values))
    assert repr(batch.rows.to_pylist()) == repr(singly.rows.to_pylist())
    assert batch.rejected.equals(singly.rejected)
    return batch


def reasons(found: Decoded) -> list[str]:
    return [str(one) for one in found.rejected.column("reason").to_pylist()]


def plainly(values: list[bytes | None], columns: dict[str, pa.DataType]) -> Decoded:
    return Decoder(stream("json", columns), tuple(columns)).decode(as_records(values))


@given(st.data())
@settings(max_examples=tries(75), deadline=None)
def test_what_is_written_is_json_that_keeps_to_the_schema(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4))
    rows = data.draw(st.integers(0, 5))
    values = [data.draw(st.lists(st.none() | (COLUMNS | NESTED)[kind], min_size=rows, max_size=rows)) for kind in kinds]
    arrays = [pa.array(one, kind) for one, kind in zip(values, kinds, strict=True)]
    table = pa.table(arrays, names=list("abcd")[: len(kinds)])
    schemas = Schemas()
    schemas.known[7] = LANGUAGE.own(table.schema, "t")
    assert LANGUAGE.is_own(schemas.known[7], "t")
    assert not LANGUAGE.is_own(schemas.known[7], "u")
    written = Forms(RecordFormat("json_schema", ((SUBJECT, "7"),)), schemas=schemas).values(table)
    texts = [None if value is None else value.removeprefix(wire.head(7)) for value in written]
    assert texts == Forms().values(table)
    schema = json.loads(schemas.known[7].text)
    for text in texts:
        assert text is not None
        jsonschema.Draft7Validator(schema).validate(json.loads(text))
    columns = {one.name: one.type for one in table.schema}
    assert repr(decoded(schemas, written, columns).rows.to_pylist()) == repr(plainly(texts, columns).rows.to_pylist())
    members = LANGUAGE.members(schemas.known[7], FORM)
    assert members is not None
    for name, kind in columns.items():
        members[name](kind)


MEMBER = st.sampled_from([1, -1, 1.5, "x", "é", None, True, [1], {"y": 1}, 2**63])
VALUES = st.one_of(
    st.dictionaries(st.sampled_from(["a", "b", "c"]), MEMBER).map(lambda one: json.dumps(one).encode()),
    st.sampled_from([b"", b"{", b"null", b"[]", b'{"a":1} ', b'{"a":NaN}', b'\n{"a":\n1}', b'{"a":"\xff"}']),
)


@given(st.lists(st.tuples(st.sampled_from([1, 2]), VALUES), max_size=6))
@settings(max_examples=tries(100), deadline=None)
def test_behind_the_head_it_reads_as_json_does(values: list[tuple[int, bytes]]) -> None:
    schemas = Schemas()
    for title in "xy":
        schemas.add(json.dumps({"title": title}), "JSON")
    columns = {"a": pa.int64(), "b": pa.string()}
    found = decoded(schemas, [wire.head(one) + value for one, value in values], columns)
    wanted = plainly([value for _, value in values], columns)
    assert found.rows.equals(wanted.rows)
    assert reasons(found) == reasons(wanted)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b'{"a":1}', "does not begin with 00 and the id of a schema, but with 7b 22 61 22 3a"),
        (b"", "but with nothing"),
        (wire.head(99) + b'{"a":1}', "the schema registry has no schema 99"),
        (wire.head(2) + b"\2", "schema 2: it is of AVRO, and the stream has JSON"),
        (wire.head(3) + b"{}", "schema 3: it is no JSON Schema: "),
        (wire.head(1) + b'{"a":"x"}', "column a: expected int64, found text 'x'"),
        (wire.head(1), "malformed JSON"),
    ],
)
def test_broken_records_stand_in_nobodys_way(value: bytes, reason: str) -> None:
    schemas = Schemas()
    for text, kind in (("{}", "JSON"), ("string", "AVRO"), ("{", "JSON")):
        schemas.add(text, kind)
    good = wire.head(1) + b'{"a":5}'
    found = decoded(schemas, [good, value, good], {"a": pa.int64()})
    assert found.rows.column("a").to_pylist() == [5, 5]
    assert [reason in one for one in reasons(found)] == [True]


def test_a_key_that_a_value_lacks_is_in_the_key_of_the_record() -> None:
    schemas = Schemas()
    schemas.add("{}", "JSON")
    columns = (Column("id", pa.int64()), Column("n", pa.int64()))
    keyed = StreamSchema("s", columns, Kind.UPSERT, ("id",), value=FORM)
    records = as_records([wire.head(1) + b'{"n":5}', wire.head(1) + b'{"id":2,"n":6}', None])
    records = records.set_column(0, "key", pa.array([b"1", b"7", b"2"], pa.binary()))
    found = Decoder(keyed, ("id", "n"), schemas).decode(records)
    rows = [(row["id"], row["n"], row[DELTA]) for row in found.rows.to_pylist()]
    assert rows == [(1, 5, 1), (2, 6, 1), (2, None, -1)]


OBJECT: dict[str, Any] = {"type": "object", "properties": {}}
NULL = {"type": "null"}


@pytest.mark.parametrize(
    ("schema", "column", "fits"),
    [
        ({"type": "integer"}, pa.int64(), True),
        ({"type": "integer"}, pa.string(), False),
        ({"type": ["null", "string"]}, pa.int64(), False),
        ({"type": ["integer", "string"]}, pa.int64(), True),
        ({"oneOf": [NULL, {"type": "boolean"}]}, pa.int64(), False),
        ({"anyOf": [{"type": "boolean"}, NULL]}, pa.bool_(), True),
        ({"oneOf": [{"type": "boolean"}, {"type": "string"}]}, pa.int64(), True),
        ({"enum": ["a", "b"]}, pa.string(), True),
        ({"$ref": "#/definitions/t"}, pa.int64(), False),
        ({"$ref": "#/definitions/round"}, pa.int64(), True),
        ({"$ref": "http://elsewhere#/t"}, pa.int64(), True),
        ({"type": "string"}, pa.timestamp("ms", "UTC"), True),
        (True, pa.int64(), True),
    ],
)
def test_a_column_is_held_against_what_is_said_plainly(schema: Any, column: pa.DataType, fits: bool) -> None:
    named = {"t": {"type": "string"}, "round": {"$ref": "#/definitions/round"}}
    root = {**OBJECT, "properties": {"a": schema}, "definitions": named}
    members = LANGUAGE.members(SchemaDefinition("JSON", json.dumps(root)), FORM)
    assert members is not None
    if fits:
        members["a"](column)
    else:
        with pytest.raises(SchemaMisfit):
            members["a"](column)


@pytest.mark.parametrize("root", [True, {}, {"allOf": [OBJECT]}, {**OBJECT, "oneOf": [{}]}, {"$ref": "#/nowhere"}])
def test_a_schema_that_does_not_name_its_members_refuses_none(root: Any) -> None:
    assert LANGUAGE.members(SchemaDefinition("JSON", json.dumps(root)), FORM) is None


@pytest.mark.parametrize(
    ("root", "said"),
    [
        ({**OBJECT, "properties": {"b": {"type": "integer"}}}, "has no member a"),
        ({**OBJECT, "properties": {"a": {"type": "string"}}}, "member a is not of the form"),
        ({**OBJECT, "properties": {"a": {"oneOf": [NULL, {"type": "integer"}]}}, "required": ["b"]}, "it requires b"),
        ({"title": "t"}, "does not say which members"),
    ],
)
def test_rows_are_not_written_by_a_schema_of_others(root: Any, said: str) -> None:
    schemas = Schemas()
    schemas.add(json.dumps(root), "JSON")
    with pytest.raises(SqlError, match=said):
        Forms(RecordFormat("json_schema", ((SUBJECT, "1"),)), schemas=schemas).values(pa.table({"a": [1]}))


@pytest.mark.parametrize(
    "said",
    [
        {"data_format": "JSONSchema"},
        {"encode": "json", "encode.schema.registry": "http://r"},
        {"data_format": "JSONSchema", "kafka_schema_registry_url": "http://r"},
    ],
)
def test_both_dialects_have_a_name_for_it(said: dict[str, object]) -> None:
    assert value_format(said).kind == "json_schema"
    assert value_format({"encode": "json"}).kind == "json"
