"""Protobuf behind the id of its schema and the place of its message, as Confluent's serializers write it."""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from dovetail.changelog.encodings.interface import (
    MemberReader,
    MemberWriter,
    Reads,
    SchemaDefinition,
    Writes,
)
from dovetail.changelog.encodings.protobuf.reader import ProtobufPayloads, path_bytes
from dovetail.changelog.encodings.protobuf.schema import MessageFile
from dovetail.changelog.encodings.protobuf.writer import joined, member
from dovetail.changelog.encodings.schema_id_framing import wire
from dovetail.changelog.encodings.schema_id_framing.reader import SchemaIdReader, SchemaMisfit
from dovetail.changelog.encodings.schema_id_framing.subjects import MESSAGE_OPTION, WriterByNewest, no_member
from dovetail.changelog.errors import SqlError


class _Messages:
    """Writes by a schema whose members are as those of the columns would be, in any order and with any numbers."""

    def __init__(self, schema_id: int, definition: SchemaDefinition, message: str) -> None:
        self._name = f"schema {schema_id}"
        try:
            found = MessageFile.of(definition)
            path = found.message_path(message)
            self._fields = found.at(path).fields_by_name
        except SchemaMisfit as misfit:
            raise self._unwritten(misfit) from None
        self._head = wire.head(schema_id) + path_bytes(path)

    def write(self, rows: pa.Table) -> pa.Array:
        head = pa.repeat(pa.scalar(self._head, pa.binary()), rows.num_rows)
        return joined([head, *(self._member(rows, name) for name in rows.column_names)], rows.num_rows)

    def _member(self, rows: pa.Table, name: str) -> pa.Array:
        if name not in self._fields:
            raise no_member(self._name, name)
        column = rows.column(name).combine_chunks()
        try:
            return member(self._fields[name], column.type)(column)
        except SchemaMisfit as misfit:
            raise self._unwritten(misfit) from None

    def _unwritten(self, misfit: SchemaMisfit) -> SqlError:
        return SqlError(
            f"no rows are written by {self._name}: {misfit}", where="Protobuf", fix="write to another topic"
        )


def reader(reads: Reads) -> MemberReader:
    return SchemaIdReader(reads, ProtobufPayloads)


def writer(writes: Writes) -> MemberWriter:
    return WriterByNewest(writes, partial(_Messages, message=writes.format.option(MESSAGE_OPTION)))
