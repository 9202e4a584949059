"""From what the parser gives of a member to the type of a column.

Avro                            column
boolean                         boolean
int, long                       integer, float, decimal; a number that does not fit makes a dead letter
float, double                   float
date                            date, timestamp
timestamp-*, local-timestamp-*  timestamp; digits finer than the type are cut off
time-millis, time-micros        time of day
decimal of bytes or fixed       decimal; integer, where it has no fraction
bytes, fixed                    binary; bytes in UTF-8 as text
string, uuid                    text; binary
enum                            text
array, map, record              array, map, struct, of what fits within
union of null and one other     as the other
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.encodings.avro import decimals
from dovetail.changelog.encodings.avro.schema import WriterSchema, described
from dovetail.changelog.encodings.schema_id_framing.lists import list_parts
from dovetail.changelog.encodings.schema_id_framing.reader import SchemaMisfit
from dovetail.changelog.formats.json_types import type_name

Convert = Callable[[pa.Array], pa.Array]
"""From the carrier to the column. Raises ArrowInvalid, or another ArrowException, where a value does not fit."""

_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_CARRIERS = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int64(),
    "long": pa.int64(),
    "enum": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
}
_UNITS = {"millis": "ms", "micros": "us", "nanos": "ns"}


def carrier(writer: WriterSchema, schema: Any, around: tuple[Any, ...] = ()) -> pa.DataType:
    """The type of what the parser gives of ``schema``, by its plain form; ``around`` are the records that it stands in.
    Raises SchemaMisfit.
    """
    found = writer.without_null(schema)
    if isinstance(found, list):
        raise SchemaMisfit("it is a union of several types")
    kind = found["type"]
    if kind == "array":
        return pa.list_(carrier(writer, found["items"], around))
    if kind == "map":
        return pa.list_(pa.struct([("key", pa.string()), ("value", carrier(writer, found["values"], around))]))
    if kind in ("record", "error"):
        if found in around:
            raise SchemaMisfit(f"it is {found['name']}, which holds itself")
        within = (*around, found)
        return pa.struct([(one["name"], carrier(writer, one["type"], within)) for one in found["fields"]])
    return _CARRIERS.get(kind, pa.binary())


def conversion(writer: WriterSchema, schema: Any, target: pa.DataType) -> Convert:
    """Raises SchemaMisfit where values of ``schema`` are none of ``target``."""
    found = writer.without_null(schema)
    if isinstance(found, list):
        raise SchemaMisfit("it is a union of several types")
    made = _nested(writer, found, target) or _logical(found, target) or _scalar(found["type"], target)
    if made is None and found["type"] == "enum" and pa.types.is_string(target):
        made = _symbols(found["symbols"])
    if made is None:
        raise SchemaMisfit(f"it is {described(found)}, and the column {type_name(target)}")
    return made


def _scalar(kind: str, target: pa.DataType) -> Convert | None:
    same = {"boolean": pa.types.is_boolean, "bytes": pa.types.is_binary, "fixed": pa.types.is_binary}
    numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    fits = {
        "null": lambda _: True,
        "int": lambda other: any(one(other) for one in numbers),
        "long": lambda other: any(one(other) for one in numbers),
        "float": pa.types.is_floating,
        "double": pa.types.is_floating,
        "bytes": lambda other: pa.types.is_binary(other) or pa.types.is_string(other),
        "string": lambda other: pa.types.is_binary(other) or pa.types.is_string(other),
    } | {name: one for name, one in same.items() if name != "bytes"}
    if kind not in fits or not fits[kind](target):
        return None
    if pa.types.is_decimal(target):
        # Straight to a decimal of fewer digits than any number may have is refused, whatever the numbers are.
        return lambda values: values.cast(pa.decimal128(19, 0)).cast(target)
    # A float of 64 bits is rounded to 32, a whole number to a float, as of JSON.
    rounded = pa.types.is_floating(target)
    return lambda values: values.cast(target, safe=not rounded)


def _logical(found: dict[str, Any], target: pa.DataType) -> Convert | None:
    logical = str(found.get("logicalType", ""))
    if logical == "decimal" and found["type"] in ("bytes", "fixed"):
        return _decimal(found, target)
    if logical == "date":
        return _date(target)
    family, _, precision = logical.rpartition("-")
    if family in ("timestamp", "local-timestamp") and precision in _UNITS and pa.types.is_timestamp(target):
        return _rescaled(_NANOSECONDS[_UNITS[precision]], target)
    if family == "time" and precision in _UNITS and pa.types.is_time(target):
        return _rescaled(_NANOSECONDS[_UNITS[precision]], target)
    return None


def _decimal(found: dict[str, Any], target: pa.DataType) -> Convert | None:
    precision, scale = int(found["precision"]), int(found.get("scale", 0))
    if not (pa.types.is_decimal(target) or pa.types.is_integer(target)):
        return None
    return lambda values: decimals.of_bytes(values, precision, scale).cast(target)


def _date(target: pa.DataType) -> Convert | None:
    if pa.types.is_date32(target):
        return lambda values: values.cast(pa.int32()).view(target)
    if pa.types.is_timestamp(target):
        return _rescaled(86_400 * _NANOSECONDS["s"], target)
    return None


def _rescaled(given_ns: int, target: pa.DataType) -> Convert:
    """Whole numbers of one unit as those of the target's, digits beyond cut off towards the past."""
    target_ns = _NANOSECONDS[target.unit]
    width = pa.int32() if target.bit_width == 32 else pa.int64()

    def convert(values: pa.Array) -> pa.Array:
        if given_ns >= target_ns:
            made = pc.multiply_checked(values, pa.scalar(given_ns // target_ns, pa.int64()))
        else:
            numbers = values.fill_null(0).to_numpy(zero_copy_only=False) // (target_ns // given_ns)
            nulls = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
            made = pa.array(numbers, pa.int64(), mask=nulls)
        return made.cast(width).view(target)

    return convert


def _symbols(symbols: list[str]) -> Convert:
    words = pa.array(symbols, pa.string())
    return words.take  # type: ignore[no-any-return]


def _nested(writer: WriterSchema, found: dict[str, Any], target: pa.DataType) -> Convert | None:
    match found["type"]:
        case "array" if pa.types.is_list(target):
            return _list(conversion(writer, found["items"], target.value_type), target)
        case "map" if pa.types.is_map(target):
            key = conversion(writer, "string", target.key_type)
            return _map(key, conversion(writer, found["values"], target.item_type), target)
        case "record" | "error" if pa.types.is_struct(target):
            return _struct(writer, found, target)
    return None


def _list(element: Convert, target: pa.DataType) -> Convert:
    def convert(values: pa.Array) -> pa.Array:
        offsets, inner = list_parts(values)
        return pa.ListArray.from_arrays(offsets, element(inner), type=target)

    return convert


def _map(key: Convert, item: Convert, target: pa.DataType) -> Convert:
    def convert(values: pa.Array) -> pa.Array:
        offsets, pairs = list_parts(values)
        keys, items = key(pairs.field("key")), item(pairs.field("value"))
        return pa.MapArray.from_arrays(offsets, keys, items, type=target)

    return convert


def _struct(writer: WriterSchema, found: dict[str, Any], target: pa.DataType) -> Convert:
    fields = {one["name"]: one["type"] for one in found["fields"]}
    members = {one.name: conversion(writer, fields[one.name], one.type) for one in target if one.name in fields}

    def convert(values: pa.Array) -> pa.Array:
        parts = dict(zip((one.name for one in values.type), values.flatten(), strict=True))
        made = [
            members[one.name](parts[one.name]) if one.name in members else pa.nulls(len(values), one.type)
            for one in target
        ]
        mask = values.is_null() if values.null_count else None
        return pa.StructArray.from_arrays(made, fields=list(target), mask=mask)

    return convert
