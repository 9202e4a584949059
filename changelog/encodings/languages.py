"""The languages of schemas, by the format whose values name them."""

from __future__ import annotations

from collections.abc import Mapping

from changelog.encodings.avro.language import AvroLanguage
from changelog.encodings.identified.language import SchemaLanguage
from changelog.encodings.json_schema.language import JsonSchemaLanguage
from changelog.encodings.protobuf.language import ProtobufLanguage

LANGUAGES: Mapping[str, SchemaLanguage] = {
    "avro": AvroLanguage(),
    "json_schema": JsonSchemaLanguage(),
    "protobuf": ProtobufLanguage(),
}
