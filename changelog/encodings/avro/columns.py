"""The columns that a schema describes: the other way round of ``generated_schema``, and of the schemas of others."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from dovetail.changelog.encodings.avro.generated_schema import text_of
from dovetail.changelog.encodings.avro.plain import PlainSchema
from dovetail.changelog.encodings.avro.schema import WriterSchema
from dovetail.changelog.encodings.interface import SchemaDefinition
from dovetail.changelog.encodings.schema_id_framing.reader import SchemaMisfit
from dovetail.changelog.errors import SqlError

_PLAIN = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
_LOGICAL = {
    "date": pa.date32(),
    "time-millis": pa.time64("us"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "timestamp-nanos": pa.timestamp("ns", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "local-timestamp-nanos": pa.timestamp("ns"),
}


def columns_of(writer: WriterSchema) -> pa.Schema:
    """Raises SchemaMisfit where a member has no type of a column."""
    return pa.schema([(name, type_of(writer, schema)) for name, schema in writer.fields().items()])


def written_columns(definition: SchemaDefinition, name: str) -> pa.Schema:
    """The columns of a schema that rows can be written by. Raises SqlError for one of another kind."""
    try:
        writer = WriterSchema.of(definition)
        columns = columns_of(writer)
        own = WriterSchema.of(SchemaDefinition("AVRO", text_of(columns, "own")))
        if PlainSchema.of(own).fields == PlainSchema.of(writer).fields:
            return columns
        why = "not all of its members are unions of null and their type"
    except SchemaMisfit as misfit:
        why = str(misfit)
    raise SqlError(f"no rows are written by {name}: {why}", where="Avro", fix="write to another topic")


def type_of(writer: WriterSchema, schema: Any, around: tuple[Any, ...] = ()) -> pa.DataType:
    """Raises SchemaMisfit; ``around`` are the records that it stands in."""
    found = writer.without_null(schema)
    if isinstance(found, list):
        raise SchemaMisfit("it is a union of several types")
    kind, logical = found["type"], found.get("logicalType")
    if kind == "array":
        return pa.list_(type_of(writer, found["items"], around))
    if kind == "map":
        return pa.map_(pa.string(), type_of(writer, found["values"], around))
    if kind in ("record", "error"):
        if found in around:
            raise SchemaMisfit(f"it is {found['name']}, which holds itself")
        within = (*around, found)
        return pa.struct([(one["name"], type_of(writer, one["type"], within)) for one in found["fields"]])
    if logical == "decimal" and kind in ("bytes", "fixed"):
        return _decimal(int(found["precision"]), int(found.get("scale", 0)))
    if kind not in _PLAIN:
        raise SchemaMisfit(f"it is {kind}")
    return _LOGICAL.get(str(logical), _PLAIN[kind])


def _decimal(precision: int, scale: int) -> pa.DataType:
    if precision > 38:
        raise SchemaMisfit(f"it is a decimal of {precision} digits, and columns have 38")
    return pa.decimal128(precision, scale)
