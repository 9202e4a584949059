"""What the members of a schema are as columns: of our own schemas the columns again, of others what can be read."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.broker.registry.protobuf_text import compiled
from dovetail.changelog.encodings.interface import SchemaDefinition
from dovetail.changelog.encodings.schema_id_framing.reader import SchemaMisfit
from dovetail.changelog.encodings.schema_parsers import SCHEMA_PARSERS
from dovetail.changelog.schema import JSON, RecordFormat
from tests.changelog.encodings.avro_records import record_of
from tests.nasty import COLUMNS, NESTED
from tests.tries import tries

INSTANT = pa.timestamp("us", "UTC")
KINDS = [kind for kind in (*COLUMNS, *NESTED) if kind not in (pa.large_string(), pa.large_binary())]


def columns(kind: str, text: Any, message: str = "") -> dict[str, pa.DataType | str]:
    """The type of each column; why there is none, where there is none."""
    language = {"avro": "AVRO", "json_schema": "JSON", "protobuf": "PROTOBUF"}[kind]
    made = SchemaDefinition(language, text if isinstance(text, str) else json.dumps(text))
    if kind == "protobuf":
        made = SchemaDefinition(made.kind, made.text, compiled=compiled(made))
    form = RecordFormat(kind, (("message", message),) if message else ())
    found = SCHEMA_PARSERS[kind].columns(made, form)
    return {name: str(one) if isinstance(one, SchemaMisfit) else one for name, one in found.items()}


@given(st.lists(st.sampled_from(KINDS), min_size=1, max_size=5))
@settings(max_examples=tries(40), deadline=None)
def test_what_columns_are_written_as_can_be_read_as_those_columns(kinds: list[pa.DataType]) -> None:
    schema = pa.schema([(f"c{place}", kind) for place, kind in enumerate(kinds)])
    for kind in ("avro", "json_schema"):
        parser = SCHEMA_PARSERS[kind]
        own = parser.own(schema, "t")
        found, members = parser.columns(own, JSON), parser.members(own, JSON)
        assert members is not None
        assert list(found) == schema.names
        for name, one in found.items():
            assert isinstance(one, pa.DataType)
            members[name](one)  # raises where it does not fit


def test_types_of_avro() -> None:
    node = {"type": "record", "name": "node", "fields": [{"name": "next", "type": ["null", "node"]}]}
    wide = {"type": "bytes", "logicalType": "decimal", "precision": 60, "scale": 2}
    nanos = {"type": "long", "logicalType": "timestamp-nanos"}
    schema = record_of(("i", "int"), ("u", ["null", "string"]), ("e", {"type": "enum", "name": "e", "symbols": ["a"]}),
                       ("m", {"type": "map", "values": ["null", "long"]}), ("two", ["int", "string"]), ("n", node),
                       ("wide", wide), ("nothing", "null"), ("at", nanos))  # fmt: skip
    assert columns("avro", schema) == {
        "i": pa.int32(),
        "u": pa.string(),
        "e": pa.string(),
        "m": pa.map_(pa.string(), pa.int64()),
        "two": "it is a union of several types",
        "n": "it is node, which holds itself",
        "wide": "it is a decimal of 60 digits, and columns have 38",
        "nothing": "it is null",
        "at": pa.timestamp("ns", "UTC"),
    }


def test_types_of_protobuf() -> None:
    text = """
    syntax = "proto3";
    import "google/protobuf/timestamp.proto";
    import "google/protobuf/wrappers.proto";
    import "google/protobuf/any.proto";
    enum Color { red = 0; }
    message Line { string item = 1; sint32 n = 2; }
    message Tree { repeated Tree children = 1; }
    message Empty { }
    message Order {
      fixed64 id = 1; repeated Line lines = 2; map<int32, Line> by = 3; Color color = 4; bytes raw = 5;
      google.protobuf.Timestamp at = 6; google.protobuf.BoolValue sure = 7; Tree tree = 8; google.protobuf.Any any = 9;
      Empty empty = 10; oneof one { float f = 11; uint32 u = 12; }
    }
    """
    line = pa.struct([("item", pa.string()), ("n", pa.int32())])
    assert columns("protobuf", text, "Order") == {
        "id": pa.uint64(),
        "lines": pa.list_(line),
        "by": pa.map_(pa.int32(), line),
        "color": pa.string(),
        "raw": pa.binary(),
        "at": INSTANT,
        "sure": pa.bool_(),
        "tree": "it is Tree, which holds itself",
        "any": "it is google.protobuf.Any",
        "empty": "it is Empty, which has no members",
        "f": pa.float32(),
        "u": pa.uint32(),
    }


def test_types_of_json_schema() -> None:
    texts = {"d": "date", "t": "date-time", "o": "time", "e": "email"}
    members = {
        "i": {"type": ["integer", "null"]},
        "x": {"$ref": "#/definitions/x"},
        **{name: {"type": "string", "format": form} for name, form in texts.items()},
        "b": {"type": "string", "contentEncoding": "base64"},
        "w": {"enum": ["a", "b"]},
        "l": {"type": "array", "items": {"oneOf": [{"type": "null"}, {"type": "boolean"}]}},
        "s": {"type": "object", "properties": {"a": {"type": "number"}}},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}},
        "open": {"type": "object"},
        "any": {},
        "true": True,
        "loop": {"$ref": "#/definitions/loop"},
        "two": {"type": ["integer", "string"]},
    }
    loop = {"type": "object", "properties": {"next": {"$ref": "#/definitions/loop"}}}
    root = {"properties": members, "definitions": {"x": {"type": "number"}, "loop": loop}}
    unsaid = "the schema does not say plainly what it is"
    assert columns("json_schema", root) == {
        "i": pa.int64(),
        "x": pa.float64(),
        "d": pa.date32(),
        "t": INSTANT,
        "o": pa.time64("us"),
        "e": pa.string(),
        "b": pa.binary(),
        "w": pa.string(),
        "l": pa.list_(pa.bool_()),
        "s": pa.struct([("a", pa.float64())]),
        "m": pa.map_(pa.string(), pa.int64()),
        "open": "it is object, and the schema does not say of what",
        "any": unsaid,
        "true": unsaid,
        "loop": "it is nested too deeply, or holds itself",
        "two": unsaid,
    }
    with pytest.raises(SchemaMisfit, match="does not say which members"):
        columns("json_schema", {"allOf": [root]})
