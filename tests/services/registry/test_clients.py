"""Confluent's own clients and serializers against the registry of the local stack, a process of its own."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.timestamp_pb2 import Timestamp

from tests.servers.process import Server
from tests.servers.schema_registry import address, schema_registry

pytestmark = pytest.mark.services

ORDER = {
    "type": "record",
    "name": "order",
    "namespace": "shop",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"], "default": None}],
}
VALUE = SerializationContext("orders", MessageField.VALUE)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with schema_registry(tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture
def client(server: Server) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": address(server), "max.retries": 0}) as client:
        yield client


def with_fields(*fields: dict[str, Any]) -> Schema:
    return Schema(json.dumps(ORDER | {"fields": [*ORDER["fields"], *fields]}), "AVRO")


def code_of(caught: pytest.ExceptionInfo[SchemaRegistryError]) -> int:
    return int(caught.value.error_code)


def test_avro_goes_there_and_back(client: SchemaRegistryClient) -> None:
    record = {"id": 7, "note": "é"}
    written = AvroSerializer(client, json.dumps(ORDER))(record, VALUE)
    assert written is not None
    assert written[:1] == b"\0"
    assert AvroDeserializer(client)(written, VALUE) == record
    found = client.get_latest_version("orders-value")
    assert found.schema_id == int.from_bytes(written[1:5], "big")
    assert json.loads(str(found.schema.schema_str))["name"] == "order"


def visit() -> Any:
    """The class of a message that holds another file's."""
    part = FileDescriptorProto(name="visit.proto", package="shop", syntax="proto3")
    part.dependency.append("google/protobuf/timestamp.proto")
    message = part.message_type.add(name="Visit")
    message.field.add(name="at", number=1, type=11, label=1, type_name=".google.protobuf.Timestamp")
    message.field.add(name="page", number=2, type=9, label=1)
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(part.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Visit"))


def test_protobuf_goes_there_and_back_with_what_it_imports(client: SchemaRegistryClient) -> None:
    kind, plain = visit(), {"use.deprecated.format": False}
    message = kind(at=Timestamp(seconds=5), page="é")
    context = SerializationContext("visits", MessageField.VALUE)
    written = ProtobufSerializer(kind, client, plain)(message, context)
    assert ProtobufDeserializer(kind, plain, client)(written, context) == message
    text = 'syntax = "proto3"; import "google/protobuf/timestamp.proto"; message A { google.protobuf.Timestamp t = 1; }'
    client.register_schema("texts-value", Schema(text, "PROTOBUF"))
    serialised = client.get_latest_version("texts-value", "serialized").schema.schema_str
    assert FileDescriptorProto.FromString(base64.b64decode(str(serialised))).message_type[0].name == "A"


def test_json_goes_there_and_back(client: SchemaRegistryClient) -> None:
    schema = json.dumps({"title": "line", "type": "object", "properties": {"n": {"type": "integer"}}})
    context = SerializationContext("lines", MessageField.VALUE)
    written = JSONSerializer(schema, client)({"n": 5}, context)
    assert JSONDeserializer(schema, schema_registry_client=client)(written, context) == {"n": 5}


def test_the_same_schema_has_one_id_and_one_version(server: Server, client: SchemaRegistryClient) -> None:
    first = client.register_schema("same-value", Schema(json.dumps(ORDER, indent=4), "AVRO"))
    with SchemaRegistryClient({"url": address(server)}) as another:
        again = another.register_schema("same-value", with_fields())
    other = client.register_schema("same-too-value", Schema(json.dumps(ORDER), "AVRO"))
    assert (again, other) == (first, first)
    assert client.get_versions("same-value") == [1]


def test_what_cannot_be_read_is_refused(client: SchemaRegistryClient) -> None:
    client.register_schema("narrow-value", with_fields())
    incompatible = with_fields({"name": "needed", "type": "string"})
    assert client.test_compatibility("narrow-value", incompatible) is False
    with pytest.raises(SchemaRegistryError, match="needed") as caught:
        client.register_schema("narrow-value", incompatible)
    assert code_of(caught) == 409
    assert client.register_schema("narrow-value", with_fields({"name": "more", "type": "int", "default": 0}))
    client.set_compatibility("narrow-value", "NONE")
    assert client.get_compatibility("narrow-value") == "NONE"
    assert client.register_schema("narrow-value", incompatible)
    assert client.get_versions("narrow-value") == [1, 2, 3]


@pytest.mark.parametrize(
    ("level", "added", "fits"),
    [
        ("BACKWARD", {"name": "x", "type": "int"}, False),
        ("BACKWARD", {"name": "x", "type": "int", "default": 1}, True),
        ("FORWARD", {"name": "x", "type": "int"}, True),
        ("FULL", {"name": "x", "type": "int"}, False),
        ("FULL_TRANSITIVE", {"name": "x", "type": "int", "default": 1}, True),
        ("NONE", {"name": "id", "type": "int"}, True),
    ],
)
def test_levels_say_who_reads_whom(client: SchemaRegistryClient, level: str, added: dict[str, Any], fits: bool) -> None:
    subject = f"level-{level}-{fits}"
    client.register_schema(subject, with_fields())
    client.set_compatibility(subject, level)
    schema = Schema(json.dumps(ORDER | {"fields": [added]}), "AVRO") if added["name"] == "id" else with_fields(added)
    assert client.test_compatibility(subject, schema) is fits


@pytest.mark.parametrize(
    ("level", "changed", "fits"),
    [
        ("BACKWARD", {"b": {"type": "string"}}, True),
        ("FORWARD", {"b": {"type": "string"}}, False),
        ("BACKWARD", {"a": {"type": "number"}}, True),
        ("BACKWARD", {"a": {"type": "string"}}, False),
        ("NONE", {"a": {"type": "string"}}, True),
    ],
)
def test_levels_say_who_reads_whose_json(
    client: SchemaRegistryClient, level: str, changed: dict[str, Any], fits: bool
) -> None:
    subject = f"json-{level}-{'-'.join(changed)}-{fits}"
    closed: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}
    client.register_schema(subject, Schema(json.dumps(closed), "JSON"))
    client.set_compatibility(subject, level)
    schema = Schema(json.dumps({**closed, "properties": {**closed["properties"], **changed}}), "JSON")
    assert client.test_compatibility(subject, schema) is fits
    if fits:
        assert client.register_schema(subject, schema)
        return
    with pytest.raises(SchemaRegistryError, match="is written, and"):
        client.register_schema(subject, schema)


def test_a_schema_may_refer_to_another(client: SchemaRegistryClient) -> None:
    client.register_schema("order-type", Schema(json.dumps(ORDER), "AVRO"))
    text = json.dumps({"type": "record", "name": "parcel", "fields": [{"name": "order", "type": "shop.order"}]})
    with pytest.raises(SchemaRegistryError, match=r"shop\.order") as caught:
        client.register_schema("parcels-value", Schema(text, "AVRO"))
    assert code_of(caught) == 42201
    whole = Schema(text, "AVRO", [SchemaReference("shop.order", "order-type", 1)])
    client.register_schema("parcels-value", whole)
    record = {"order": {"id": 1, "note": None}}
    context = SerializationContext("parcels", MessageField.VALUE)
    written = AvroSerializer(client, whole)(record, context)
    assert AvroDeserializer(client)(written, context) == record
    with pytest.raises(SchemaRegistryError, match="referred to") as caught:
        client.delete_subject("order-type")
    assert code_of(caught) == 42206


def test_deletion_is_soft_first(client: SchemaRegistryClient) -> None:
    schema_id = client.register_schema("gone-value", with_fields({"name": "gone", "type": "int", "default": 0}))
    with pytest.raises(SchemaRegistryError) as caught:
        client.delete_subject("gone-value", permanent=True)
    assert code_of(caught) == 40405
    assert client.delete_subject("gone-value") == [1]
    assert "gone-value" not in client.get_subjects()
    # Records carry the id forever.
    assert client.get_schema(schema_id).schema_str
    with pytest.raises(SchemaRegistryError) as caught:
        client.get_latest_version("gone-value")
    assert code_of(caught) == 40404
    assert client.delete_subject("gone-value", permanent=True) == [1]
    with pytest.raises(SchemaRegistryError) as caught:
        client.get_versions("gone-value")
    assert code_of(caught) == 40401


def test_what_is_registered_outlives_a_crash(tmp_path: Path) -> None:
    with schema_registry(tmp_path) as server:
        with SchemaRegistryClient({"url": address(server)}) as client:
            first = client.register_schema("kept-value", Schema(json.dumps(ORDER), "AVRO"))
        server.kill()
        server.start()
        with SchemaRegistryClient({"url": address(server)}) as client:
            assert client.get_schema(first).schema_str == json.dumps(ORDER, separators=(",", ":"))
            assert client.register_schema("kept-value", with_fields({"name": "x", "type": "int", "default": 0})) > first
