"""The languages of schemas, by the format whose values name them."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.changelog.encodings.avro.language import AvroLanguage
from dovetail.changelog.encodings.identified.language import SchemaLanguage
from dovetail.changelog.encodings.json_schema.language import JsonSchemaLanguage
from dovetail.changelog.encodings.protobuf.language import ProtobufLanguage

LANGUAGES: Mapping[str, SchemaLanguage] = {
    "avro": AvroLanguage(),
    "json_schema": JsonSchemaLanguage(),
    "protobuf": ProtobufLanguage(),
}
