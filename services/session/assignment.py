"""Values of INSERT into a table, as PostgreSQL assigns them to columns of other types.

A text is read as the type of its column, a number becomes a text, or a whole number where the column holds those.
Whether a value fits then is the decoder's question, as that of any producer's (``typed_rows``).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pyarrow as pa

from dovetail.changelog.schema import StreamSchema
from dovetail.sql.syntax.statements import Computed, DefaultValue, Literal

_TRUE = ("t", "tr", "tru", "true", "y", "ye", "yes", "on", "1")
_FALSE = ("f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0")
_WHOLE = re.compile(r"[+-]?\d++")
_NUMBER = re.compile(r"[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:e[+-]?\d++)?", re.IGNORECASE)
_HEX = re.compile(r"\\x((?:[0-9a-f]{2}\s*)*)", re.IGNORECASE)
_ELEMENT = re.compile(r'\s*+(?:"((?:[^"\\]|\\.)*+)"|([^{},"]*+))\s*+')


def assigned_rows(
    schema: StreamSchema, columns: Sequence[str], rows: Sequence[Sequence[Literal | Computed | DefaultValue]]
) -> list[list[Literal | Computed | DefaultValue]]:
    """The rows with their values as the columns take them; where none is named, the last may be left out."""
    types = {column.name: column.type for column in schema.columns}
    names = columns or list(types)
    kinds = [types.get(name) for name in names]
    return [
        [
            *(value if kind is None else assigned(value, kind) for value, kind in zip(row, kinds, strict=False)),
            *row[len(kinds) :],
            *([] if columns else [DefaultValue()] * (len(kinds) - len(row))),
        ]
        for row in rows
    ]


def assigned(value: Literal | Computed | DefaultValue, kind: pa.DataType) -> Literal | Computed | DefaultValue:
    """The value for a column of ``kind``; as it is where PostgreSQL has no assignment for it."""
    if value is None or isinstance(value, Computed | DefaultValue):
        return value
    if pa.types.is_string(kind):
        return _as_text(value)
    if isinstance(value, str):
        return _read(value, kind)
    if pa.types.is_integer(kind) and isinstance(value, float | Decimal):
        return int(Decimal(value).to_integral_value(ROUND_HALF_UP))
    if pa.types.is_list(kind) and isinstance(value, list):
        return [assigned(element, kind.value_type) for element in value]
    if pa.types.is_struct(kind) and isinstance(value, tuple) and len(value) == kind.num_fields:
        return tuple(assigned(member, kind.field(place).type) for place, member in enumerate(value))
    return value


def _as_text(value: Literal) -> Literal:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float | Decimal) else value


def _read(text: str, kind: pa.DataType) -> Literal:
    bare = text.strip()
    if pa.types.is_integer(kind):
        return int(bare) if _WHOLE.fullmatch(bare) else text
    if pa.types.is_floating(kind):
        return float(bare) if _NUMBER.fullmatch(bare) else text
    if pa.types.is_decimal(kind):
        return Decimal(bare) if _NUMBER.fullmatch(bare) else text
    if pa.types.is_boolean(kind):
        return {**dict.fromkeys(_TRUE, True), **dict.fromkeys(_FALSE, False)}.get(bare.lower(), text)
    if pa.types.is_binary(kind):
        hexadecimal = _HEX.fullmatch(text)
        value = bytes.fromhex(hexadecimal[1]) if hexadecimal else text.encode()
        return base64.b64encode(value).decode()
    if pa.types.is_list(kind) and bare.startswith("{"):
        return _array(bare, kind)
    return text


def _array(text: str, kind: pa.DataType) -> Literal:
    """``{1, "a b", NULL, {2}}``; the text itself where it is no array."""
    try:
        value, end = _elements(text, 0, kind)
    except ValueError:
        return text
    return value if end == len(text) else text


def _elements(text: str, start: int, kind: pa.DataType) -> tuple[list[Any], int]:
    """The elements of the array that begins at ``start``, and where it ends. Raises ValueError."""
    found, place = list[Any](), start + 1
    if re.match(r"\s*\}", text[place:]):
        return found, text.index("}", place) + 1
    while True:
        if text[place:].lstrip().startswith("{") and pa.types.is_list(kind.value_type):
            element, place = _elements(text, text.index("{", place), kind.value_type)
        else:
            element, place = _element(text, place, kind.value_type)
        found.append(element)
        place += len(text[place:]) - len(text[place:].lstrip())
        sign = text[place : place + 1]
        place += 1
        if sign == "}":
            return found, place
        if sign != ",":
            raise ValueError(text)


def _element(text: str, place: int, kind: pa.DataType) -> tuple[Literal, int]:
    read = _ELEMENT.match(text, place)
    if read is None or (read[1] is None and not read[2].strip()):
        raise ValueError(text)
    if read[1] is not None:
        return assigned(re.sub(r"\\(.)", r"\1", read[1]), kind), read.end()
    bare = read[2].strip()
    return (None if bare.upper() == "NULL" else assigned(bare, kind)), read.end()
