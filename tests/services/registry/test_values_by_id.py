"""Values that hypothesis draws: what Confluent's serializers write is read, and what is written they read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dovetail.broker.address import RegistryAddress
from dovetail.broker.registry.client import SchemaRegistryReader
from dovetail.changelog.decode import Decoder
from dovetail.changelog.encode import Forms
from dovetail.changelog.encodings.schema_id_framing.subjects import SUBJECT
from dovetail.changelog.encodings.schema_parsers import SCHEMA_PARSERS
from dovetail.changelog.schema import Column, RecordFormat, StreamSchema
from tests.changelog.encodings.avro_records import as_records
from tests.changelog.encodings.protobuf_records import message_class, proto
from tests.servers.schema_registry import address, schema_registry
from tests.tries import tries

pytestmark = pytest.mark.services

PLAIN = {"use.deprecated.format": False}
TEXT = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
message Before { string x = 1; }
message Around { message Row {
  int64 a = 1; optional string b = 2; repeated double c = 3; map<string, uint32> d = 4;
  google.protobuf.Timestamp e = 5; bytes f = 6; Row g = 7;
} }
"""
INSIDE = pa.struct([("a", pa.int64()), ("b", pa.string())])
COLUMNS = {
    "a": pa.int64(),
    "b": pa.string(),
    "c": pa.list_(pa.float64()),
    "d": pa.map_(pa.string(), pa.uint32()),
    "e": pa.timestamp("ns", "UTC"),
    "f": pa.binary(),
    "g": INSIDE,
}
WHOLE, NUMBERS = st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False)
MEMBERS: dict[str, st.SearchStrategy[Any]] = {
    "a": WHOLE,
    "b": st.text(),
    "c": st.lists(NUMBERS, max_size=3),
    "d": st.dictionaries(st.text(max_size=3), st.integers(0, 2**32 - 1), max_size=3),
    "e": st.builds(dict, seconds=st.integers(-(10**9), 9 * 10**9), nanos=st.integers(0, 999_999_999)),
    "f": st.binary(max_size=300),
    "g": st.builds(dict, a=WHOLE),
}
FINITE = st.floats(allow_nan=False, allow_infinity=False)
CALM = settings(max_examples=tries(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with schema_registry(tmp_path_factory.mktemp("registry")) as running:
        yield address(running)


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": url}) as client:
        yield client


@pytest.fixture(scope="module")
def consumer(url: str) -> Iterator[SchemaRegistryClient]:
    """One that has registered a text takes it for the descriptor that a deserializer asks for."""
    with SchemaRegistryClient({"url": url}) as client:
        yield client


@pytest.fixture(scope="module")
def reader(url: str) -> Iterator[SchemaRegistryReader]:
    with closing(SchemaRegistryReader(RegistryAddress(url))) as reader:
        yield reader


def rows_of(reader: SchemaRegistryReader, kind: str, columns: dict[str, pa.DataType], values: list[Any]) -> pa.Table:
    stream = StreamSchema("s", tuple(Column(*one) for one in columns.items()), value=RecordFormat(kind))
    found = Decoder(stream, tuple(columns), reader).decode(as_records(values))
    assert found.rejected.num_rows == 0
    return found.rows.select(list(columns))


@given(st.lists(st.fixed_dictionaries({}, optional=MEMBERS), max_size=4))
@CALM
def test_messages_of_confluent_are_read(
    client: SchemaRegistryClient, reader: SchemaRegistryReader, rows: list[dict[str, Any]]
) -> None:
    kind = message_class(proto(TEXT), (1, 0))
    serialize = ProtobufSerializer(kind, client, PLAIN)
    context = SerializationContext("messages", MessageField.VALUE)
    found = rows_of(reader, "protobuf", COLUMNS, [serialize(kind(**row), context) for row in rows])
    for row, given_row in zip(found.to_pylist(maps_as_pydicts="strict"), rows, strict=True):
        empty: dict[str, Any] = {"a": 0, "b": None, "c": [], "d": {}, "f": b"", "g": None}
        inside = {"g": {"a": given_row["g"]["a"], "b": None}} if "g" in given_row else {}
        assert {name: row[name] for name in empty} == {
            name: (given_row | inside).get(name, empty[name]) for name in empty
        }
    instants = [row["e"]["seconds"] * 10**9 + row["e"]["nanos"] if "e" in row else None for row in rows]
    assert found.column("e").cast(pa.int64()).to_pylist() == instants


@given(st.lists(st.fixed_dictionaries({}, optional={name: MEMBERS[name] for name in "abcdf"}), max_size=4))
@CALM
def test_confluent_reads_the_messages_that_are_written(
    client: SchemaRegistryClient,
    consumer: SchemaRegistryClient,
    reader: SchemaRegistryReader,
    rows: list[dict[str, Any]],
) -> None:
    columns = pa.schema([(name, COLUMNS[name]) for name in "abcdf"])
    own = SCHEMA_PARSERS["protobuf"].own(columns, "written")
    client.register_schema("written-value", Schema(own.text, "PROTOBUF"))
    form = RecordFormat("protobuf", ((SUBJECT, "written-value"),))
    table = pa.Table.from_pylist([{**row, "d": list(row.get("d", {}).items())} for row in rows], schema=columns)
    deserialize = ProtobufDeserializer(message_class(proto(own.text)), PLAIN, consumer)
    context = SerializationContext("written", MessageField.VALUE)
    for value, row in zip(Forms(form, schemas=reader).values(table), rows, strict=True):
        read = deserialize(value, context)
        assert {name: getattr(read, name) for name in row} == row
        assert [name for name in "abf" if read.HasField(name)] == [name for name in "abf" if name in row]


DOCUMENT = {"title": "d", "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}


@given(st.lists(st.fixed_dictionaries({}, optional={"a": WHOLE, "b": st.text(), "c": st.lists(FINITE)}), max_size=4))
@CALM
def test_objects_go_both_ways(
    client: SchemaRegistryClient, reader: SchemaRegistryReader, rows: list[dict[str, Any]]
) -> None:
    columns = {name: COLUMNS[name] for name in "abc"}
    serialize = JSONSerializer(json.dumps(DOCUMENT), client)
    context = SerializationContext("objects", MessageField.VALUE)
    found = rows_of(reader, "json_schema", columns, [serialize(row, context) for row in rows])
    assert found.to_pylist() == [{name: row.get(name) for name in columns} for row in rows]
    own = SCHEMA_PARSERS["json_schema"].own(found.schema, "back")
    client.register_schema("back-value", Schema(own.text, "JSON"))
    written = Forms(RecordFormat("json_schema", ((SUBJECT, "back-value"),)), schemas=reader).values(found)
    deserialize = JSONDeserializer(None, schema_registry_client=client)
    back = [deserialize(value, SerializationContext("back", MessageField.VALUE)) for value in written]
    assert back == found.to_pylist()
