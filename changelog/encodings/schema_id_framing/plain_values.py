"""Values as ``pa.array`` takes them for their type."""

from __future__ import annotations

import pyarrow as pa


def as_given(values: pa.Array) -> pa.Array:
    """Times as numbers, at any depth: those before the year 1 or after 9999 are no dates of Python."""
    return values.cast(_numbered(values.type))


def _numbered(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        return pa.int64()
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return pa.int32()
    if pa.types.is_map(kind):
        return pa.map_(_numbered(kind.key_type), _numbered(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_numbered(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(one.name, _numbered(one.type)) for one in kind])
    return kind
