"""Rows as records of ``generated_schema``: a library writes them as one container, which is cut at marks."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import polars as pl
import pyarrow as pa

from dovetail.changelog.encodings.avro import decimals
from dovetail.changelog.encodings.avro.container import MARK, MARK_BYTES, mark_of
from dovetail.changelog.encodings.avro.generated_schema import text_of
from dovetail.changelog.encodings.avro.plain import PlainSchema
from dovetail.changelog.encodings.avro.schema import WriterSchema
from dovetail.changelog.encodings.interface import SchemaDefinition
from dovetail.changelog.encodings.schema_id_framing.lists import list_parts


def records(rows: pa.Table) -> list[bytes]:
    """A record per row, by the schema ``generated_schema.text_of`` its columns."""
    if rows.num_rows == 0:
        return []
    carriers = [_carried(_whole(column)) for column in rows.columns]
    carried = pa.table(carriers, names=rows.column_names)
    if any(_holds_map(field.type) for field in rows.schema):
        return _one_by_one(carried, text_of(rows.schema, "rows"))
    made = _cut(pl.DataFrame(carried), mark_of(*carriers))
    # A value that holds the mark of all values was made to.
    return made if len(made) == rows.num_rows else _one_by_one(carried, text_of(rows.schema, "rows"))


def _cut(frame: pl.DataFrame, mark: bytes) -> list[bytes]:
    """The records of ``frame``; others than its rows where ``mark`` stands in one of them."""
    written = io.BytesIO()
    frame.rechunk().with_columns(pl.lit(mark, pl.Binary).alias(MARK)).write_avro(written)
    written.seek(0)
    blocks: Any = fastavro.block_reader(written)
    bodies = [block.bytes_.getvalue() for block in blocks]
    # A member that may be null: the branch of the union, the length, the bytes.
    return b"".join(bodies).split(b"\x02" + bytes([MARK_BYTES << 1]) + mark)[:-1]


def _one_by_one(carried: pa.Table, text: str) -> list[bytes]:
    """As ``records``, slowly: of maps, which the library does not write."""
    plain = PlainSchema.of(WriterSchema.of(SchemaDefinition("AVRO", text)))
    schema = fastavro.parse_schema({"type": "record", "name": "root", "fields": plain.fields})
    made = []
    for row in carried.to_pylist():
        written = io.BytesIO()
        fastavro.schemaless_writer(written, schema, row)
        made.append(written.getvalue())
    return made


def _whole(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    return whole if isinstance(whole, pa.Array) else whole.chunk(0)


def _carried(values: pa.Array) -> pa.Array:
    """What the library writes as the schema says."""
    kind = values.type
    if pa.types.is_nested(kind):
        return _carried_nested(values)
    if kind == pa.uint64():
        return decimals.as_bytes(values.cast(pa.decimal128(38, 0)))
    if pa.types.is_decimal(kind):
        return decimals.as_bytes(values.cast(pa.decimal128(38, kind.scale)))
    if pa.types.is_timestamp(kind):
        whole = values.cast(pa.timestamp("ms", kind.tz)) if kind.unit == "s" else values
        return whole.cast(pa.int64())
    if pa.types.is_time(kind):
        return values.cast(pa.time64("us"), safe=False).cast(pa.int64())
    if pa.types.is_date32(kind):
        return values.cast(pa.int32())
    if pa.types.is_integer(kind):
        return values.cast(pa.int64() if kind in (pa.int64(), pa.uint32()) else pa.int32())
    return values


def _carried_nested(values: pa.Array) -> pa.Array:
    kind = values.type
    if pa.types.is_struct(kind):
        parts = [_carried(part) for part in values.flatten()]
        mask = values.is_null() if values.null_count else None
        return pa.StructArray.from_arrays(parts, names=[one.name for one in kind], mask=mask)
    if pa.types.is_map(kind):
        values = values.cast(pa.list_(pa.struct([("key", pa.string()), ("value", kind.item_type)])))
    offsets, inner = list_parts(values)
    return pa.ListArray.from_arrays(offsets, _carried(inner))


def _holds_map(kind: pa.DataType) -> bool:
    return pa.types.is_map(kind) or any(_holds_map(kind.field(place).type) for place in range(kind.num_fields))
