"""Records of one schema, a batch as columns, or one by one. Both go through the same conversions.

The parser of batches is the more lenient one: it takes any branch of a union but the first for the other one, and a
truth value of 2 for false. So bytes that no serializer writes may be a row by the batch, and another, or a dead letter,
where they are looked at alone.
"""

from __future__ import annotations

import io
import struct
from typing import Any

import fastavro
import numpy as np
import polars as pl
import pyarrow as pa

from dovetail.changelog.encodings.avro.container import MARK, mark_of, marked, wrapped
from dovetail.changelog.encodings.avro.conversions import Convert, carrier, conversion
from dovetail.changelog.encodings.avro.depth import Depth
from dovetail.changelog.encodings.avro.plain import PlainSchema
from dovetail.changelog.encodings.avro.schema import WriterSchema
from dovetail.changelog.encodings.interface import Reads, SchemaDefinition
from dovetail.changelog.encodings.schema_id_framing.plain_values import as_given
from dovetail.changelog.encodings.schema_id_framing.reader import SchemaMisfit
from dovetail.changelog.errors import RecordRejected
from dovetail.changelog.formats.json_batch import NeedsRowDecoding
from dovetail.changelog.formats.members import Member
from dovetail.changelog.wording import counted

_LONGEST = 1 << 30
_BROKEN = (EOFError, IndexError, KeyError, ValueError, TypeError, OverflowError, MemoryError, struct.error)
"""What the parser of single records raises of bytes that are no record: it has no error of its own."""


class AvroPayloads:
    """Reads the members that ``reads`` names out of records of one schema."""

    def __init__(self, definition: SchemaDefinition, reads: Reads) -> None:
        """Raises SchemaMisfit."""
        writer = WriterSchema.of(definition)
        if reads.of_key and len(reads.stream.primary_key) == 1:
            writer = writer.as_record(reads.stream.primary_key[0])
        self._place = reads.place
        self._mentioned = {*writer.fields(), *(writer.row().fields() if reads.format.envelope else ())}
        self._fields = writer.fields()
        self._members = reads.members
        self._types: dict[str, pa.DataType] = {}
        self._conversions: dict[str, Convert] = {}
        for member in reads.members:
            if member.name in self._fields:
                self._take(writer, member)
        plain = PlainSchema.of(writer)
        self._columnar = plain.columnar
        self._depth = Depth(plain.fields, reads.place) if plain.recursive else None
        self._container = marked(plain.fields)
        self._single = fastavro.parse_schema({"type": "record", "name": "root", "fields": plain.fields})

    def _take(self, writer: WriterSchema, member: Member) -> None:
        schema = self._fields[member.name]
        try:
            self._types[member.name] = carrier(writer, schema)
            self._conversions[member.name] = conversion(writer, schema, member.type)
        except SchemaMisfit as misfit:
            raise SchemaMisfit(f"column {member.name}: {misfit}") from None

    def may_contain(self, payloads: pa.Array, name: str) -> pa.Array:
        return pa.repeat(pa.scalar(name in self._mentioned), len(payloads))

    def read(self, payloads: pa.Array) -> pa.Table:
        if len(payloads) == 0:
            return pa.table({one.name: pa.array([], one.type) for one in self._members})
        carriers = self._carriers(payloads)
        try:
            columns = [self._column(member, carriers, len(payloads)) for member in self._members]
        except (pa.ArrowException, OverflowError):
            raise NeedsRowDecoding from None
        return pa.table(columns, schema=pa.schema([(one.name, one.type) for one in self._members]))

    def parsed(self, payload: bytes) -> dict[str, Any]:
        stream = io.BytesIO(payload)
        try:
            if self._depth is not None:
                self._depth.expect_shallow(payload)
            record: Any = fastavro.schemaless_reader(stream, self._single, None)
        except _BROKEN as fault:
            why = "it ends too early" if isinstance(fault, EOFError) else type(fault).__name__
            raise RecordRejected(f"the {self._place} is no record of its schema: {why}") from None
        if rest := len(payload) - stream.tell():
            raise RecordRejected(f"the {self._place} has {counted(rest, 'byte')} more than a record of its schema")
        return dict(record)

    def values(self, record: dict[str, Any]) -> list[Any]:
        return [self._value(member, record) for member in self._members]

    def _value(self, member: Member, record: dict[str, Any]) -> Any:
        if member.name not in self._conversions or member.name not in record:
            return record.get(member.name, member.default)
        try:
            given = pa.array([record[member.name]], self._types[member.name])
            [value] = as_given(self._conversions[member.name](given)).to_pylist()
        except (pa.ArrowException, OverflowError, ValueError, TypeError) as fault:
            raise RecordRejected(f"column {member.name}: {fault}") from None
        return value

    def _column(self, member: Member, carriers: dict[str, pa.Array], rows: int) -> pa.Array:
        if member.name in carriers:
            return self._conversions[member.name](carriers[member.name])
        if member.default is None:
            return pa.nulls(rows, member.type)
        return pa.repeat(pa.scalar(member.default, member.type), rows)

    def _carriers(self, payloads: pa.Array) -> dict[str, pa.Array]:
        """The members as the parser gives them. Raises NeedsRowDecoding."""
        if payloads.nbytes > _LONGEST:
            raise NeedsRowDecoding
        if self._depth is not None:
            _expect_shallow(self._depth, payloads)
        mark = mark_of(payloads)
        text = wrapped(payloads, self._container, mark)
        if not self._columnar:
            return self._of_records(text, mark)
        try:
            rows = pl.read_avro(io.BytesIO(text), columns=[*self._conversions, MARK])
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
            raise NeedsRowDecoding from None
        if rows.height != len(payloads) or not (rows.get_column(MARK) == pl.Series([mark], dtype=pl.Binary)).all():
            raise NeedsRowDecoding
        return {name: _arrow(rows.get_column(name), kind) for name, kind in self._types.items()}

    def _of_records(self, text: bytes, mark: bytes) -> dict[str, pa.Array]:
        try:
            rows: list[Any] = list(fastavro.reader(io.BytesIO(text)))
            if any(row[MARK] != mark for row in rows):
                raise NeedsRowDecoding
            return {name: pa.array([row[name] for row in rows], kind) for name, kind in self._types.items()}
        except (*_BROKEN, pa.ArrowException):
            raise NeedsRowDecoding from None


def _expect_shallow(depth: Depth, payloads: pa.Array) -> None:
    """Raises NeedsRowDecoding where a payload is nested too deeply, or is none."""
    deep = []
    for place, payload in enumerate(payloads.to_pylist()):
        try:
            depth.expect_shallow(payload)
        except (RecordRejected, EOFError, IndexError):
            deep.append(place)
    if deep:
        raise NeedsRowDecoding(np.array(deep))


def _arrow(column: pl.Series, kind: pa.DataType) -> pa.Array:
    made = column.to_arrow()
    return made if made.type == kind else made.cast(kind)
