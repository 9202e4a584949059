"""Schemas of Protobuf, as CREATE STREAM asks about them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pyarrow as pa

from dovetail.changelog.encodings.interface import SchemaDefinition
from dovetail.changelog.encodings.protobuf.builders import built
from dovetail.changelog.encodings.protobuf.columns import type_of
from dovetail.changelog.encodings.protobuf.generated_schema import message_name, text_of
from dovetail.changelog.encodings.protobuf.schema import MessageFile
from dovetail.changelog.encodings.schema_id_framing.reader import SchemaMisfit
from dovetail.changelog.encodings.schema_id_framing.schema_parser import ColumnType, Fits, column_type
from dovetail.changelog.encodings.schema_id_framing.subjects import MESSAGE_OPTION
from dovetail.changelog.schema import RecordFormat


class ProtobufSchemaParser:
    def own(self, columns: pa.Schema, name: str, former: SchemaDefinition | None = None) -> SchemaDefinition:
        before = None if former is None else MessageFile.of(former).root.message_type[0]
        return SchemaDefinition("PROTOBUF", text_of(columns, name, before))

    def is_own(self, definition: SchemaDefinition, name: str) -> bool:
        try:
            root = MessageFile.of(definition).root
        except SchemaMisfit:
            return False
        return not root.package and [one.name for one in root.message_type] == [message_name(name)]

    def members(self, definition: SchemaDefinition, form: RecordFormat) -> Mapping[str, Fits]:
        return {one.name: partial(built, one) for one in _message(definition, form).fields}

    def columns(self, definition: SchemaDefinition, form: RecordFormat) -> Mapping[str, ColumnType]:
        return {one.name: column_type(partial(type_of, one)) for one in _message(definition, form).fields}


def _message(definition: SchemaDefinition, form: RecordFormat) -> Any:
    found = MessageFile.of(definition)
    return found.at(found.message_path(form.option(MESSAGE_OPTION)))
