"""Column types of databases as Arrow types, and which declared types they fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql

from dovetail.changelog.wording import type_words

INSTANT = pa.timestamp("us", tz="UTC")
"""Every instant of a dictionary, as of a stream, is in microseconds of UTC."""
_MOST_DIGITS = 38

_Type = sa.types.TypeEngine[Any]


def arrow_type(found: _Type) -> pa.DataType:
    """The Arrow type of a column that SQLAlchemy reflected; what has a text form and nothing else is a string."""
    for kind, build in _TYPES:
        if isinstance(found, kind):
            return build(found)
    return pa.string()


def fits(there: pa.DataType, declared: pa.DataType) -> bool:
    """Whether values of ``there`` can be of type ``declared``, with all digits. Everything has a text."""
    if _loses_digits(there, declared):
        return False
    if pa.types.is_string(declared) or pa.types.is_large_string(declared) or _family(there) == _family(declared):
        return True
    return (_family(there), _family(declared)) in _ALSO


def _loses_digits(there: pa.DataType, declared: pa.DataType) -> bool:
    """Whether values of ``there`` have digits behind the point that ``declared`` has no room for."""
    if pa.types.is_decimal(there) and pa.types.is_decimal(declared):
        return bool(there.scale > declared.scale)
    fractions = pa.types.is_floating(there) or (pa.types.is_decimal(there) and there.scale > 0)
    return bool(fractions and pa.types.is_integer(declared))


def fix_of_type(column: str, there: pa.DataType) -> str:
    """How ``column`` is to be declared, whose values are of type ``there`` at the source."""
    if there == pa.string():
        return f'declare "{column}" as string'
    return f'declare "{column}" as {type_words(there)}, or as string'


def _family(kind: pa.DataType) -> str:
    for family, holds in _FAMILIES:
        if holds(kind):
            return family
    return str(kind)


_FAMILIES: tuple[tuple[str, Callable[[pa.DataType], bool]], ...] = (
    ("boolean", pa.types.is_boolean),
    ("number", lambda kind: pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)),
    ("text", lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind)),
    ("bytes", lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind)),
    ("instant", pa.types.is_timestamp),
    ("date", pa.types.is_date),
    ("time", pa.types.is_time),
    ("nested", pa.types.is_nested),
)
_ALSO = frozenset(
    {
        ("number", "boolean"),
        ("boolean", "number"),
        ("text", "bytes"),
        ("date", "instant"),
        ("instant", "date"),
        ("text", "nested"),  # JSON
    }
)


def _integer(signed: pa.DataType, unsigned: pa.DataType) -> Callable[[Any], pa.DataType]:
    return lambda found: unsigned if getattr(found, "unsigned", False) else signed


def _tiny(found: Any) -> pa.DataType:
    if found.display_width == 1:
        return pa.bool_()
    return pa.uint8() if found.unsigned else pa.int8()


def _numeric(found: Any) -> pa.DataType:
    if found.precision is None or found.precision > _MOST_DIGITS or found.scale is None:
        return pa.string()
    return pa.decimal128(found.precision, found.scale)


def _bits(found: Any) -> pa.DataType:
    return pa.bool_() if found.length in (None, 1) else pa.uint64()


def _always(kind: pa.DataType) -> Callable[[Any], pa.DataType]:
    return lambda found: kind


_TYPES: tuple[tuple[type[_Type], Callable[[Any], pa.DataType]], ...] = (
    (mysql.TINYINT, _tiny),
    (mysql.BIT, _bits),
    (mysql.YEAR, _always(pa.int16())),
    (sa.Boolean, _always(pa.bool_())),
    (sa.BigInteger, _integer(pa.int64(), pa.uint64())),
    (sa.SmallInteger, _integer(pa.int16(), pa.uint16())),
    (sa.Integer, _integer(pa.int32(), pa.uint32())),
    (mysql.DOUBLE, _always(pa.float64())),
    (sa.REAL, _always(pa.float32())),
    (sa.Double, _always(pa.float64())),
    (mysql.FLOAT, _always(pa.float32())),
    (sa.Float, _always(pa.float64())),
    (sa.Numeric, _numeric),
    (sa.DateTime, _always(INSTANT)),
    (sa.Date, _always(pa.date32())),
    (sa.Time, _always(pa.time64("us"))),
    (sa.LargeBinary, _always(pa.binary())),
    (sa.BINARY, _always(pa.binary())),
    (sa.VARBINARY, _always(pa.binary())),
    (postgresql.ARRAY, lambda found: pa.list_(arrow_type(found.item_type))),
)
