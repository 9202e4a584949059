"""Schemas of Avro, as CREATE STREAM asks about them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import orjson
import pyarrow as pa

from dovetail.changelog.encodings.avro.columns import type_of, written_columns
from dovetail.changelog.encodings.avro.conversions import conversion
from dovetail.changelog.encodings.avro.generated_schema import text_of
from dovetail.changelog.encodings.avro.schema import WriterSchema
from dovetail.changelog.encodings.interface import SchemaDefinition
from dovetail.changelog.encodings.schema_id_framing.schema_parser import ColumnType, Fits, column_type
from dovetail.changelog.errors import SqlError
from dovetail.changelog.schema import RecordFormat


class AvroSchemaParser:
    def own(self, columns: pa.Schema, name: str, former: SchemaDefinition | None = None) -> SchemaDefinition:
        return SchemaDefinition("AVRO", text_of(columns, name))

    def is_own(self, definition: SchemaDefinition, name: str) -> bool:
        try:
            written_columns(definition, "newest")
        except SqlError:
            return False
        own = text_of(pa.schema([]), name)
        return bool(orjson.loads(definition.text)["name"] == orjson.loads(own)["name"])

    def members(self, definition: SchemaDefinition, form: RecordFormat) -> Mapping[str, Fits]:
        writer = _rows(definition, form)
        return {name: partial(conversion, writer, schema) for name, schema in writer.fields().items()}

    def columns(self, definition: SchemaDefinition, form: RecordFormat) -> Mapping[str, ColumnType]:
        writer = _rows(definition, form)
        return {name: column_type(partial(type_of, writer, schema)) for name, schema in writer.fields().items()}


def _rows(definition: SchemaDefinition, form: RecordFormat) -> WriterSchema:
    writer = WriterSchema.of(definition)
    return writer.row() if form.envelope else writer
