"""Avro by the schema whose id a value begins with, as Confluent's serializers write it."""

from __future__ import annotations

import pyarrow as pa

from dovetail.changelog.encodings.avro.columns import written_columns
from dovetail.changelog.encodings.avro.reader import AvroPayloads
from dovetail.changelog.encodings.avro.writer import records
from dovetail.changelog.encodings.interface import (
    MemberReader,
    MemberWriter,
    Reads,
    SchemaDefinition,
    Writes,
)
from dovetail.changelog.encodings.schema_id_framing import wire
from dovetail.changelog.encodings.schema_id_framing.reader import SchemaIdReader
from dovetail.changelog.encodings.schema_id_framing.subjects import WriterByNewest, no_member


class _Records:
    """Writes by a schema: members that it has and the rows do not are null."""

    def __init__(self, schema_id: int, definition: SchemaDefinition) -> None:
        self._head = wire.head(schema_id)
        self._name = f"schema {schema_id}"
        self._columns = written_columns(definition, self._name)

    def write(self, rows: pa.Table) -> pa.Array:
        for name in rows.column_names:
            if name not in self._columns.names:
                raise no_member(self._name, name)
        given = set(rows.column_names)
        columns = [
            rows.column(one.name).cast(one.type, safe=False) if one.name in given else pa.nulls(rows.num_rows, one.type)
            for one in self._columns
        ]
        made = records(pa.table(columns, schema=self._columns))
        return pa.array([self._head + record for record in made], pa.large_binary())


def reader(reads: Reads) -> MemberReader:
    return SchemaIdReader(reads, AvroPayloads)


def writer(writes: Writes) -> MemberWriter:
    return WriterByNewest(writes, _Records)
