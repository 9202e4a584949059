"""JSON objects behind the id of their JSON Schema, as Confluent's serializers write them.

They are read as JSON is: the schema says what producers have promised, and values are not held against it.
"""

from __future__ import annotations

import polars as pl
import pyarrow as pa

from dovetail.changelog.encodings import json_format
from dovetail.changelog.encodings.interface import (
    MemberReader,
    MemberWriter,
    Reads,
    SchemaDefinition,
    Writes,
)
from dovetail.changelog.encodings.json_schema.generated_schema import member
from dovetail.changelog.encodings.json_schema.schema import ObjectSchema
from dovetail.changelog.encodings.schema_id_framing import wire
from dovetail.changelog.encodings.schema_id_framing.reader import PayloadReader, SchemaIdReader, SchemaMisfit
from dovetail.changelog.encodings.schema_id_framing.subjects import WriterByNewest, no_member
from dovetail.changelog.errors import SqlError
from dovetail.changelog.formats import json_text


class _Objects:
    """Writes by a schema that says of each column what is written."""

    def __init__(self, schema_id: int, definition: SchemaDefinition) -> None:
        self._head = wire.head(schema_id)
        self._name = f"schema {schema_id}"
        try:
            self._schema = ObjectSchema.of(definition)
        except SchemaMisfit as misfit:
            raise _unwritten(self._name, str(misfit)) from None

    def write(self, rows: pa.Table) -> pa.Array:
        self._expect(rows.schema)
        texts = json_text.objects(rows).cast(pl.Binary)
        return pl.select(pl.lit(self._head) + texts).to_series().to_arrow()

    def _expect(self, columns: pa.Schema) -> None:
        members = self._schema.members()
        if members is None:
            raise _unwritten(self._name, "it does not say which members there are")
        for column in columns:
            if column.name not in members:
                raise no_member(self._name, column.name)
            if self._schema.found(members[column.name]) != member(column):
                raise _unwritten(self._name, f"member {column.name} is not of the form that columns have")
        if missing := [name for name in self._schema.required() if name not in columns.names]:
            raise _unwritten(self._name, f"it requires {missing[0]}, which is no column")


def _unwritten(name: str, why: str) -> SqlError:
    return SqlError(f"no rows are written by {name}: {why}", where="JSON Schema", fix="write to another topic")


def _payloads(definition: SchemaDefinition, reads: Reads) -> PayloadReader:
    ObjectSchema.of(definition)
    return json_format.reader(reads)


def reader(reads: Reads) -> MemberReader:
    return SchemaIdReader(reads, _payloads)


def writer(writes: Writes) -> MemberWriter:
    return WriterByNewest(writes, _Objects)
