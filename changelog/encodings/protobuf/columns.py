"""The columns that the members of a message are."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from google.protobuf.descriptor import FieldDescriptor

from dovetail.changelog.encodings.protobuf.builders import TIMESTAMP, is_map
from dovetail.changelog.encodings.schema_id_framing.reader import SchemaMisfit

_WRAPPED = "google.protobuf."
_WRAPPERS = ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
_PLAIN = {
    FieldDescriptor.CPPTYPE_BOOL: pa.bool_(),
    FieldDescriptor.CPPTYPE_INT32: pa.int32(),
    FieldDescriptor.CPPTYPE_INT64: pa.int64(),
    FieldDescriptor.CPPTYPE_UINT32: pa.uint32(),
    FieldDescriptor.CPPTYPE_UINT64: pa.uint64(),
    FieldDescriptor.CPPTYPE_FLOAT: pa.float32(),
    FieldDescriptor.CPPTYPE_DOUBLE: pa.float64(),
    FieldDescriptor.CPPTYPE_ENUM: pa.string(),
}


def type_of(field: Any, around: tuple[str, ...] = ()) -> pa.DataType:
    """Raises SchemaMisfit where it is no column; ``around`` are the messages that it stands in."""
    if is_map(field):
        key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        return pa.map_(_single(key, around), _single(value, around))
    single = _single(field, around)
    return pa.list_(single) if field.is_repeated else single


def _single(field: Any, around: tuple[str, ...]) -> pa.DataType:
    if field.message_type is not None:
        return _message(field.message_type, around)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return pa.binary()
    return _PLAIN.get(field.cpp_type, pa.string())


def _message(message: Any, around: tuple[str, ...]) -> pa.DataType:
    name = str(message.full_name)
    if name == TIMESTAMP:
        return pa.timestamp("us", "UTC")
    if name in {f"{_WRAPPED}{one}Value" for one in _WRAPPERS}:
        return _single(message.fields_by_name["value"], around)
    if name.startswith(_WRAPPED):
        raise SchemaMisfit(f"it is {name}")
    if name in around:
        raise SchemaMisfit(f"it is {name}, which holds itself")
    if not message.fields:
        raise SchemaMisfit(f"it is {name}, which has no members")
    return pa.struct([(one.name, type_of(one, (*around, name))) for one in message.fields])
