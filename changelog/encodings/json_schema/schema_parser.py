"""JSON Schema, as CREATE STREAM asks about it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pyarrow as pa

from dovetail.changelog.encodings.interface import SchemaDefinition
from dovetail.changelog.encodings.json_schema.columns import type_of
from dovetail.changelog.encodings.json_schema.generated_schema import text_of
from dovetail.changelog.encodings.json_schema.schema import ObjectSchema
from dovetail.changelog.encodings.schema_id_framing.reader import SchemaMisfit
from dovetail.changelog.encodings.schema_id_framing.schema_parser import ColumnType, Fits, column_type
from dovetail.changelog.schema import RecordFormat


class JsonSchemaParser:
    def own(self, columns: pa.Schema, name: str, former: SchemaDefinition | None = None) -> SchemaDefinition:
        return SchemaDefinition("JSON", text_of(columns, name))

    def is_own(self, definition: SchemaDefinition, name: str) -> bool:
        try:
            found = ObjectSchema.of(definition)
        except SchemaMisfit:
            return False
        empty = ObjectSchema.of(self.own(pa.schema([]), name))
        return isinstance(found.root, dict) and {**found.root, "properties": {}} == empty.root

    def members(self, definition: SchemaDefinition, form: RecordFormat) -> Mapping[str, Fits] | None:
        schema = ObjectSchema.of(definition)
        named = schema.members()
        return None if named is None else {name: partial(schema.expect, one) for name, one in named.items()}

    def columns(self, definition: SchemaDefinition, form: RecordFormat) -> Mapping[str, ColumnType]:
        schema = ObjectSchema.of(definition)
        named = schema.members()
        if named is None:
            raise SchemaMisfit("it does not say which members there are")
        return {name: column_type(partial(type_of, schema, one)) for name, one in named.items()}
