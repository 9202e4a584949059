"""The parsers of schemas, by the format whose values name them."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.changelog.encodings.avro.schema_parser import AvroSchemaParser
from dovetail.changelog.encodings.json_schema.schema_parser import JsonSchemaParser
from dovetail.changelog.encodings.protobuf.schema_parser import ProtobufSchemaParser
from dovetail.changelog.encodings.schema_id_framing.schema_parser import SchemaParser

SCHEMA_PARSERS: Mapping[str, SchemaParser] = {
    "avro": AvroSchemaParser(),
    "json_schema": JsonSchemaParser(),
    "protobuf": ProtobufSchemaParser(),
}
