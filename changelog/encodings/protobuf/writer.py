"""Rows as messages, a column at a time: of each member the bytes of all rows, which are joined row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import FieldDescriptor as Field

from dovetail.changelog.encodings.protobuf.builders import TIMESTAMP, described, is_map
from dovetail.changelog.encodings.protobuf.varints import varint, varints
from dovetail.changelog.encodings.schema_id_framing.lists import list_parts
from dovetail.changelog.encodings.schema_id_framing.reader import SchemaMisfit
from dovetail.changelog.errors import SqlError

Write = Callable[[pa.Array], pa.Array]
"""From values, none NULL, to the bytes of each without tag."""

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_WIRE = {Field.TYPE_DOUBLE: _FIXED64, Field.TYPE_FLOAT: _FIXED32, Field.TYPE_STRING: _LENGTH, Field.TYPE_BYTES: _LENGTH}
_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def member(field: Any, kind: pa.DataType) -> Write:
    """For a column of ``kind``, NULLs too: the member with its tag, nothing for NULL. Raises SchemaMisfit where such a
    column is not written as ``field``; what it gives raises SqlError for a NULL within a list or a map.
    """
    if is_map(field):
        if not pa.types.is_map(kind):
            raise _misfit(field)
        return _map(field, kind)
    if field.is_repeated:
        if not pa.types.is_list(kind):
            raise _misfit(field)
        return _list(field, kind)
    if not field.has_presence:
        raise SchemaMisfit(f"member {field.name} is not optional")
    tagged = _tagged(field, kind)

    def write(values: pa.Array) -> pa.Array:
        if values.null_count == 0:
            return tagged(values)
        valid = values.is_valid()
        places = pc.subtract(pc.cumulative_sum(valid.cast(pa.int64())), 1)
        written = tagged(values.filter(valid))
        return written.take(pc.if_else(valid, places, pa.scalar(None, pa.int64()))).fill_null(b"")

    return write


def _misfit(field: Any) -> SchemaMisfit:
    return SchemaMisfit(f"member {field.name} is {described(field)}, which columns of its type are not written as")


def joined(parts: list[pa.Array], rows: int) -> pa.Array:
    """The bytes of ``parts``, row by row."""
    if not parts:
        return pa.repeat(pa.scalar(b"", pa.binary()), rows)
    return pc.binary_join_element_wise(*parts, b"")


def _tagged(field: Any, kind: pa.DataType) -> Write:
    write = _value(field, kind)
    tag = varint(field.number << 3 | _wire(field))
    return lambda values: pc.binary_join_element_wise(pa.scalar(tag, pa.binary()), write(values), b"")


def _wire(field: Any) -> int:
    return _LENGTH if field.message_type is not None else _WIRE.get(field.type, _VARINT)


def _value(field: Any, kind: pa.DataType) -> Write:
    """One value, with its length where it has one."""
    if field.message_type is not None:
        return _message(field, kind)
    if pa.types.is_integer(kind):
        wide = kind.bit_width == 64
        if pa.types.is_signed_integer(kind):
            return _expected(field, Field.TYPE_INT64 if wide else Field.TYPE_INT32, _integers)
        return _expected(field, Field.TYPE_UINT64 if wide else Field.TYPE_UINT32, _integers)
    for is_of, expected_type, write in _SCALARS:
        if is_of(kind):
            return _expected(field, expected_type, write)
    raise _misfit(field)


def _expected(field: Any, expected: int, write: Write) -> Write:
    if field.type != expected or field.enum_type is not None:
        raise _misfit(field)
    return write


def _integers(values: pa.Array) -> pa.Array:
    if values.type == pa.uint64():
        return varints(values.to_numpy())
    return varints(values.cast(pa.int64()).to_numpy().view(np.uint64))


def _truths(values: pa.Array) -> pa.Array:
    return varints(values.cast(pa.uint64()).to_numpy())


def _floats(values: pa.Array) -> pa.Array:
    width = values.type.bit_width // 8
    numbers = np.ascontiguousarray(values.to_numpy())
    ends = np.arange(len(numbers) + 1, dtype=np.int32) * np.int32(width)
    return pa.Array.from_buffers(pa.binary(), len(numbers), [None, pa.py_buffer(ends), pa.py_buffer(numbers)])


def _texts(values: pa.Array) -> pa.Array:
    return _measured(values.cast(pa.string()).cast(pa.binary()))


def _bytes(values: pa.Array) -> pa.Array:
    return _measured(values.cast(pa.binary()))


def _measured(texts: pa.Array) -> pa.Array:
    """Each behind its length."""
    lengths = pc.binary_length(texts).to_numpy(zero_copy_only=False).astype(np.uint64)
    return pc.binary_join_element_wise(varints(lengths), texts, b"")


_SCALARS: tuple[tuple[Callable[[pa.DataType], bool], int, Write], ...] = (
    (pa.types.is_boolean, Field.TYPE_BOOL, _truths),
    (pa.types.is_float32, Field.TYPE_FLOAT, _floats),
    (pa.types.is_float64, Field.TYPE_DOUBLE, _floats),
    (pa.types.is_string, Field.TYPE_STRING, _texts),
    (pa.types.is_large_string, Field.TYPE_STRING, _texts),
    (pa.types.is_decimal, Field.TYPE_STRING, _texts),
    (pa.types.is_date32, Field.TYPE_STRING, _texts),
    (pa.types.is_time, Field.TYPE_STRING, _texts),
    (pa.types.is_binary, Field.TYPE_BYTES, _bytes),
    (pa.types.is_large_binary, Field.TYPE_BYTES, _bytes),
)


def _message(field: Any, kind: pa.DataType) -> Write:
    if pa.types.is_timestamp(kind) and field.message_type.full_name == TIMESTAMP:
        return _timestamps
    if not pa.types.is_struct(kind):
        raise _misfit(field)
    fields = field.message_type.fields_by_name
    if missing := [one.name for one in kind if one.name not in fields]:
        raise SchemaMisfit(f"member {field.name} has no member {missing[0]}")
    members = [member(fields[one.name], one.type) for one in kind]

    def write(values: pa.Array) -> pa.Array:
        parts = [make(part) for make, part in zip(members, values.flatten(), strict=True)]
        return _measured(joined(parts, len(values)))

    return write


def _timestamps(values: pa.Array) -> pa.Array:
    unit = _NANOSECONDS[values.type.unit]
    instants = values.cast(pa.int64()).to_numpy()
    seconds, rest = np.divmod(instants, 10**9 // unit)
    tags = [pa.scalar(varint(number << 3), pa.binary()) for number in (1, 2)]
    numbers = [varints(one.view(np.uint64)) for one in (seconds, rest * unit)]
    return _measured(pc.binary_join_element_wise(tags[0], numbers[0], tags[1], numbers[1], b""))


def _list(field: Any, kind: pa.DataType) -> Write:
    packed = _wire(field) != _LENGTH
    element = _value(field, kind.value_type) if packed else _tagged(field, kind.value_type)
    tag = pa.scalar(varint(field.number << 3 | _LENGTH), pa.binary())

    def write(values: pa.Array) -> pa.Array:
        offsets, inner = list_parts(values)
        written = _concatenated(offsets, element(_whole(inner, field.name)))
        if not packed:
            return written
        whole = pc.binary_join_element_wise(tag, _measured(written), b"")
        return pc.if_else(pc.equal(written, b""), pa.scalar(b"", pa.binary()), whole)

    return write


def _map(field: Any, kind: pa.DataType) -> Write:
    fields = field.message_type.fields_by_name
    parts = [_tagged(fields["key"], kind.key_type), _tagged(fields["value"], kind.item_type)]
    tag = pa.scalar(varint(field.number << 3 | _LENGTH), pa.binary())
    pairs = pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)]))

    def write(values: pa.Array) -> pa.Array:
        offsets, inner = list_parts(values.cast(pairs))
        entry = [
            make(_whole(inner.field(name), field.name)) for make, name in zip(parts, ("key", "value"), strict=True)
        ]
        entries = pc.binary_join_element_wise(tag, _measured(joined(entry, len(inner))), b"")
        return _concatenated(offsets, entries)

    return write


def _whole(values: pa.Array, name: str) -> pa.Array:
    if values.null_count:
        raise SqlError(
            f"{name} holds a NULL inside, of which Protobuf has no form",
            where=f"column {name}",
            fix="leave it out, or write 0 or an empty text",
        )
    return values


def _concatenated(offsets: pa.Array, texts: pa.Array) -> pa.Array:
    """The texts of each list together; nothing for NULL."""
    return pc.binary_join(pa.ListArray.from_arrays(offsets, texts), b"").fill_null(b"")
