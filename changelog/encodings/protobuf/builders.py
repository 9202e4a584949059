"""From the values of a member, as the library gives them, to a column.

Protobuf                         column
bool                             boolean
int32, int64, fixed32, ...       integer, float, decimal; a number that does not fit makes a dead letter
float, double                    float
string                           text; decimal, date, time of day, timestamp, from their texts; binary
bytes                            binary; text, in UTF-8
enum                             text, its name, or the digits of a number without one; integer
google.protobuf.Timestamp        timestamp; digits finer than the type are cut off
google.protobuf.Int64Value, ...  as what they hold
message                          struct
repeated, map                    array, map
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import FieldDescriptor

from dovetail.changelog.encodings.schema_id_framing.reader import SchemaMisfit
from dovetail.changelog.encodings.text_cells import cell_reader, column_of_cells
from dovetail.changelog.formats.json_batch import NeedsRowDecoding
from dovetail.changelog.formats.json_types import Mismatch, type_name

Build = Callable[[list[Any]], pa.Array]
"""From values, None where there is none. Raises one of ``BROKEN``."""
Take = Callable[[list[Any]], list[Any]]
"""A member of each message; None where it has none. Raises UnicodeDecodeError."""

TIMESTAMP = "google.protobuf.Timestamp"
_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_SIGNED = (FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64)
_UNSIGNED = (FieldDescriptor.CPPTYPE_UINT32, FieldDescriptor.CPPTYPE_UINT64)
_FLOATS = {FieldDescriptor.CPPTYPE_FLOAT: pa.float32(), FieldDescriptor.CPPTYPE_DOUBLE: pa.float64()}
_OF_TEXTS = (pa.types.is_decimal, pa.types.is_date32, pa.types.is_time, pa.types.is_timestamp)
BROKEN = (pa.ArrowException, OverflowError, ValueError, TypeError, Mismatch)
"""What a ``Build`` raises of values that do not fit."""


def taken(field: Any) -> Take:
    """How a member is taken out of messages."""
    name, whole = field.name, attrgetter(field.name)
    if field.is_repeated or not field.has_presence:
        return lambda messages: list(map(whole, messages))
    if field.message_type is None and not field.default_value:
        # Whether there is one is only asked of what could be none: the question takes longer than all the rest.
        return lambda messages: [
            value if value or message.HasField(name) else None
            for value, message in zip(map(whole, messages), messages, strict=True)
        ]
    return lambda messages: [whole(message) if message.HasField(name) else None for message in messages]


def built(field: Any, target: pa.DataType) -> Build:
    """Raises SchemaMisfit where values of ``field`` are none of ``target``."""
    made: Build | None
    if is_map(field):
        made = _map(field, target) if pa.types.is_map(target) else None
    elif field.is_repeated:
        made = _list(_single(field, target.value_type), target) if pa.types.is_list(target) else None
    else:
        made = _single(field, target)
    if made is None:
        raise SchemaMisfit(f"it is {described(field)}, and the column {type_name(target)}")
    return made


def is_map(field: Any) -> bool:
    return bool(field.message_type is not None and field.message_type.GetOptions().map_entry)


def described(field: Any) -> str:
    """A member as a message names it."""
    if is_map(field):
        return "map"
    if field.message_type is not None:
        kind = str(field.message_type.full_name)
    else:
        kind = "enum" if field.enum_type is not None else _TYPE_NAMES[field.type]
    return f"repeated {kind}" if field.is_repeated else kind


_TYPE_NAMES = {
    getattr(FieldDescriptor, name): name.removeprefix("TYPE_").lower()
    for name in dir(FieldDescriptor)
    if name.startswith("TYPE_")
}


def _single(field: Any, target: pa.DataType) -> Build:
    """Of one value, repeated or not."""
    made = _message(field, target) if field.message_type is not None else _scalar(field, target)
    if made is None:
        raise SchemaMisfit(f"it is {described(field)}, and the column {type_name(target)}")
    return made


def _scalar(field: Any, target: pa.DataType) -> Build | None:
    kind = field.cpp_type
    if field.enum_type is not None:
        return _enum(field, target)
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return (lambda values: pa.array(values, pa.bool_())) if pa.types.is_boolean(target) else None
    if kind in _SIGNED or kind in _UNSIGNED:
        return _whole(pa.int64() if kind in _SIGNED else pa.uint64(), target)
    if kind in _FLOATS:
        if not pa.types.is_floating(target):
            return None
        return lambda values: pa.array(values, _FLOATS[kind]).cast(target, safe=False)
    if field.type == FieldDescriptor.TYPE_BYTES:
        if not (pa.types.is_binary(target) or pa.types.is_string(target)):
            return None
        return lambda values: pa.array(values, pa.binary()).cast(target)
    return _text(target)


def _whole(carrier: pa.DataType, target: pa.DataType) -> Build | None:
    if pa.types.is_decimal(target):
        # Straight to a decimal of fewer digits than any number may have is refused, whatever the numbers are.
        return lambda values: pa.array(values, carrier).cast(pa.decimal128(20, 0)).cast(target)
    if pa.types.is_integer(target) or pa.types.is_floating(target):
        rounded = pa.types.is_floating(target)
        return lambda values: pa.array(values, carrier).cast(target, safe=not rounded)
    return None


def _text(target: pa.DataType) -> Build | None:
    if pa.types.is_string(target) or pa.types.is_binary(target):
        return lambda values: pa.array(values, pa.string()).cast(target)
    if not any(is_of(target) for is_of in _OF_TEXTS):
        return None
    read = cell_reader(target)

    def build(values: list[Any]) -> pa.Array:
        try:
            return column_of_cells(pa.array(values, pa.string()), target)
        except NeedsRowDecoding:
            return pa.array([None if value is None else read(value) for value in values], target)

    return build


def _enum(field: Any, target: pa.DataType) -> Build | None:
    if pa.types.is_integer(target):
        return lambda values: pa.array(values, pa.int64()).cast(target)
    if not pa.types.is_string(target):
        return None
    names = {number: one.name for number, one in field.enum_type.values_by_number.items()}
    return lambda values: pa.array(
        [None if value is None else names.get(value, str(value)) for value in values], pa.string()
    )


def _message(field: Any, target: pa.DataType) -> Build | None:
    kind = field.message_type
    if kind.full_name == TIMESTAMP:
        return _timestamp(target) if pa.types.is_timestamp(target) else None
    if kind.file.name == "google/protobuf/wrappers.proto":
        inner = _single(kind.fields_by_name["value"], target)
        return lambda values: inner([None if value is None else value.value for value in values])
    return _struct(kind, target) if pa.types.is_struct(target) else None


def _timestamp(target: pa.DataType) -> Build:
    unit = _NANOSECONDS[target.unit]

    def build(values: list[Any]) -> pa.Array:
        seconds = pa.array([None if value is None else value.seconds for value in values], pa.int64())
        nanos = np.array([0 if value is None else value.nanos for value in values], dtype=np.int64)
        whole = pc.multiply_checked(seconds, pa.scalar(10**9 // unit, pa.int64()))
        return pc.add_checked(whole, pa.array(nanos // unit, pa.int64())).view(target)

    return build


def _struct(kind: Any, target: pa.DataType) -> Build:
    """A message that is absent is NULL; what it lacks of the struct is, too."""
    fields = kind.fields_by_name
    members = {
        one.name: (taken(fields[one.name]), built(fields[one.name], one.type)) for one in target if one.name in fields
    }

    def build(values: list[Any]) -> pa.Array:
        present = [value for value in values if value is not None]
        parts = []
        for one in target:
            if one.name in members:
                take, make = members[one.name]
                parts.append(make(take(present)))
            else:
                parts.append(pa.nulls(len(present), one.type))
        if not parts:
            return pa.array([None if value is None else {} for value in values], target)
        whole = pa.StructArray.from_arrays(parts, fields=list(target))
        return _spread(whole, values)

    return build


def _spread(whole: pa.Array, values: list[Any]) -> pa.Array:
    """What there is, with NULL where a value is None."""
    if len(whole) == len(values):
        return whole
    there = np.array([value is not None for value in values], dtype=np.bool_)
    return whole.take(pa.array(np.cumsum(there) - 1, pa.int64(), mask=~there))


def _list(element: Build, target: pa.DataType) -> Build:
    def build(values: list[Any]) -> pa.Array:
        inner = element(list(chain.from_iterable(value for value in values if value is not None)))
        return pa.ListArray.from_arrays(_offsets(values), inner, type=target)

    return build


def _map(field: Any, target: pa.DataType) -> Build:
    fields = field.message_type.fields_by_name
    key, item = _single(fields["key"], target.key_type), _single(fields["value"], target.item_type)

    def build(values: list[Any]) -> pa.Array:
        # The library has them in no order that it keeps to.
        pairs = [pair for value in values if value is not None for pair in sorted(value.items(), key=itemgetter(0))]
        keys, items = key([one for one, _ in pairs]), item([one for _, one in pairs])
        return pa.MapArray.from_arrays(_offsets(values), keys, items, type=target)

    return build


def _offsets(values: list[Any]) -> pa.Array:
    """From 0, NULL where a value is None."""
    ends = np.cumsum([0, *(0 if value is None else len(value) for value in values)])
    nulls = np.array([*(value is None for value in values), False])
    return pa.array(ends, pa.int32(), mask=nulls if nulls.any() else None)
