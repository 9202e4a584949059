"""Schemas of Avro and records of them, as hypothesis draws them; a source of schemas that a test fills."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from typing import Any

import fastavro
import pyarrow as pa

from dovetail.changelog.encodings.interface import SchemaDefinition
from dovetail.changelog.encodings.schema_id_framing import wire
from dovetail.changelog.encodings.schema_id_framing.subjects import SUBJECT
from dovetail.changelog.schema import Column, RecordFormat, StreamSchema


@dataclass
class Schemas:
    """A ``SchemaSource`` of what it is given."""

    known: dict[int, SchemaDefinition] = field(default_factory=dict)
    lookups: int = 0

    def add(self, schema: Any, kind: str = "AVRO") -> int:
        text = schema if isinstance(schema, str) and kind != "AVRO" else json.dumps(schema)
        self.known[len(self.known) + 1] = SchemaDefinition(kind, text)
        return len(self.known)

    def definition(self, schema_id: int) -> SchemaDefinition | None:
        self.lookups += 1
        return self.known.get(schema_id)

    def newest(self, subject: str) -> int | None:
        return int(subject)

    def latest(self, subject: str) -> int | None:
        return self.newest(subject)


def avro_stream(**columns: pa.DataType) -> StreamSchema:
    return StreamSchema("s", tuple(Column(*one) for one in columns.items()), value=RecordFormat("avro"))


def written_by(schema_id: int) -> RecordFormat:
    return RecordFormat("avro", ((SUBJECT, str(schema_id)),))


def encoded(schema_id: int, schema: Any, record: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), record)
    return wire.head(schema_id) + stream.getvalue()


def record_of(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "r", "fields": [{"name": name, "type": kind} for name, kind in fields]}


def as_records(values: list[bytes | None]) -> pa.Table:
    count = len(values)
    return pa.table(
        {
            "key": pa.array([None] * count, pa.binary()),
            "value": pa.array(values, pa.binary()),
            "timestamp": pa.array([0] * count, pa.timestamp("ms", "UTC")),
            "partition": pa.array([0] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
        }
    )
