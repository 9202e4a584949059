"""Types: from their names in both dialects to Arrow types, and back to a name.

What an Arrow type stands for:

- ``int`` is 32 bits under both rules. ``int8`` is one byte under Timeplus rules and eight under RisingWave's (as in
  PostgreSQL); ``float`` is 32 bits and 64 bits in the same way.
- An instant of Timeplus is a timestamp in UTC: of seconds (``datetime``), of milliseconds (``datetime64(3)``, also of
  1 or 2 digits) or of microseconds (``datetime64(6)``, also of 4 or 5). RisingWave's ``TIMESTAMPTZ`` is of
  microseconds, and so is its ``TIMESTAMP``, which has no zone: ``timestamp[us]``.
- What has a text form in JSON and needs no arithmetic is a string: uuid, ipv4, ipv6, json, enums, fixed strings.
- ``nullable(T)`` and ``low_cardinality(T)`` are T: every column can hold NULL, unless it is declared NOT NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NoReturn

import pyarrow as pa

from dovetail.changelog.errors import UnknownName, Unsupported
from dovetail.changelog.schema import Column, Included
from dovetail.changelog.suggest import suggestion
from dovetail.sql.syntax.cursor import Cursor
from dovetail.sql.syntax.dialect import Dovetail
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.type_names import TypeName, type_name

INSTANT = pa.timestamp("us", tz="UTC")
LOCAL = pa.timestamp("us")
_DIGITS = 3
"""Those of a datetime64 that does not say it."""

_SIMPLE: Mapping[str, pa.DataType] = {
    "bool": pa.bool_(),
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int2": pa.int16(),
    "int16": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "int4": pa.int32(),
    "int32": pa.int32(),
    "bigint": pa.int64(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint": pa.uint32(),
    "uint32": pa.uint32(),
    "uint64": pa.uint64(),
    "float32": pa.float32(),
    "float4": pa.float32(),
    "real": pa.float32(),
    "float64": pa.float64(),
    "float8": pa.float64(),
    "double": pa.float64(),
    "double precision": pa.float64(),
    "string": pa.string(),
    "text": pa.string(),
    "varchar": pa.string(),
    "character varying": pa.string(),
    "char": pa.string(),
    "character": pa.string(),
    "fixed_string": pa.string(),
    "fixedstring": pa.string(),
    "uuid": pa.string(),
    "ipv4": pa.string(),
    "ipv6": pa.string(),
    "json": pa.string(),
    "jsonb": pa.string(),
    "interval": pa.string(),
    "enum": pa.string(),
    "enum8": pa.string(),
    "enum16": pa.string(),
    "bytea": pa.binary(),
    "bytes": pa.binary(),
    "date": pa.date32(),
    "date32": pa.date32(),
    "time": pa.time64("us"),
    "time without time zone": pa.time64("us"),
    "timestamp without time zone": LOCAL,
}
SHOWN_AS_DECLARED = frozenset({"json", "ipv4", "ipv6"})
"""Names of texts that say what is in them, though nothing looks at that."""
_BY_RULES: Mapping[Rules, Mapping[str, pa.DataType]] = {
    Rules.TIMEPLUS: {"int8": pa.int8(), "float": pa.float32(), "timestamp": INSTANT},
    Rules.RISINGWAVE: {"int8": pa.int64(), "float": pa.float64(), "timestamp": LOCAL},
}
_DIGITS_OF_DECIMAL: Mapping[str, int] = {"decimal32": 9, "decimal64": 18, "decimal128": 38}
_WIDE = ("decimal256", "int128", "int256", "uint128", "uint256")


def arrow(text: str, rules: Rules) -> pa.DataType:
    """The Arrow type that ``text`` names. Raises UnknownName with the nearest name, or Unsupported."""
    cursor = Cursor(text, Dovetail().tokenize(text), clause="a type")
    found = arrow_type(cursor, type_name(cursor), rules)
    cursor.end()
    return found


def is_type(name: str) -> bool:
    """Whether ``name`` names a type, whatever its parameters."""
    return name.lower() in TYPE_NAMES


def arrow_type(cursor: Cursor, written: TypeName, rules: Rules) -> pa.DataType:
    """The Arrow type of a name that ``cursor`` has read."""
    simple = _BY_RULES[rules].get(written.name, _SIMPLE.get(written.name))
    if simple is not None:
        return simple
    build = _BUILDERS.get(written.name)
    if build is None:
        _unknown(cursor, written)
    return build(cursor, written, rules)


def _unknown(cursor: Cursor, written: TypeName) -> NoReturn:
    if written.name in _WIDE:
        cursor.fail(
            f"{written.name} is wider than any column",
            fix="decimal(38, 0), or string",
            kind=Unsupported,
            offset=written.offset,
        )
    fix = suggestion(
        written.name,
        TYPE_NAMES,
        "int, int64, float64, decimal(10, 2), string, bool, date, datetime64(3), array(int), map(string, int)",
    )
    cursor.fail(f'there is no type "{written.name}"', fix=fix, kind=UnknownName, offset=written.offset)


def _decimal(cursor: Cursor, written: TypeName, rules: Rules) -> pa.DataType:
    numbers = [parameter for parameter in written.parameters if isinstance(parameter, int)]
    precision = numbers[0] if numbers else 28
    scale = numbers[1] if len(numbers) > 1 else (0 if numbers else 10)
    if not 1 <= precision <= 38 or scale > precision:
        cursor.fail(
            f"a decimal has 1 to 38 digits, not more than these after the point: decimal({precision}, {scale})",
            fix="decimal(38, 10)",
            kind=Unsupported,
            offset=written.offset,
        )
    return pa.decimal128(precision, scale)


def _decimal_of_bits(cursor: Cursor, written: TypeName, rules: Rules) -> pa.DataType:
    """``decimal32(3)``: the width says how many digits there are, the parameter how many stand after the point."""
    digits = _DIGITS_OF_DECIMAL[written.name]
    scale = written.parameters[0] if len(written.parameters) == 1 else None
    if not isinstance(scale, int) or scale > digits:
        cursor.fail(
            f"{written.name} takes the digits after the point, of {digits}",
            fix=f"{written.name}(3)",
            kind=Unsupported,
            offset=written.offset,
        )
    return pa.decimal128(digits, scale)


def _instant(cursor: Cursor, written: TypeName, rules: Rules) -> pa.DataType:
    """``datetime``, ``datetime64(digits)``, ``timestamptz``."""
    for parameter in written.parameters:
        if isinstance(parameter, int) and parameter > 6:
            cursor.fail(
                "instants are kept to the microsecond",
                fix=f"{written.name}(6)",
                kind=Unsupported,
                offset=written.offset,
            )
        if isinstance(parameter, str) and parameter.upper() not in ("UTC", "ETC/UTC"):
            cursor.fail(
                f'every time is in UTC, not in "{parameter}"',
                fix=f"{written.name}('UTC')",
                kind=Unsupported,
                offset=written.offset,
            )
    if written.name == "timestamptz" or rules is Rules.RISINGWAVE:
        return INSTANT
    digits = _DIGITS if written.name == "datetime64" else 0
    digits = next((parameter for parameter in written.parameters if isinstance(parameter, int)), digits)
    return pa.timestamp("s" if digits == 0 else "ms" if digits <= 3 else "us", tz="UTC")


def _member_types(cursor: Cursor, written: TypeName, rules: Rules, count: int) -> list[pa.DataType]:
    if count and len(written.members) != count:
        cursor.fail(f"{written.name} takes {count} type{'s' * (count > 1)}", offset=written.offset)
    return [arrow_type(cursor, member, rules) for _, member in written.members]


def _array(cursor: Cursor, written: TypeName, rules: Rules) -> pa.DataType:
    return pa.list_(_member_types(cursor, written, rules, 1)[0])


def _map(cursor: Cursor, written: TypeName, rules: Rules) -> pa.DataType:
    key, value = _member_types(cursor, written, rules, 2)
    if rules is Rules.RISINGWAVE and not (pa.types.is_integer(key) or pa.types.is_string(key)):
        cursor.fail("a map has keys of varchar, smallint, int or bigint", offset=written.offset)
    return pa.map_(key, value)


def _tuple(cursor: Cursor, written: TypeName, rules: Rules) -> pa.DataType:
    """A struct; fields without a name are called by their place, from 1."""
    types = _member_types(cursor, written, rules, 0)
    names = [name or str(place) for place, (name, _) in enumerate(written.members, start=1)]
    return pa.struct(list(zip(names, types, strict=True)))


def _same(cursor: Cursor, written: TypeName, rules: Rules) -> pa.DataType:
    return _member_types(cursor, written, rules, 1)[0]


_BUILDERS: Mapping[str, Callable[[Cursor, TypeName, Rules], pa.DataType]] = {
    "decimal": _decimal,
    "numeric": _decimal,
    **dict.fromkeys(_DIGITS_OF_DECIMAL, _decimal_of_bits),
    "datetime": _instant,
    "datetime32": _instant,
    "datetime64": _instant,
    "timestamptz": _instant,
    "timestamp_ltz": _instant,
    "array": _array,
    "map": _map,
    "tuple": _tuple,
    "struct": _tuple,
    "row": _tuple,
    "nullable": _same,
    "low_cardinality": _same,
    "lowcardinality": _same,
}

TYPE_NAMES = frozenset({*_SIMPLE, *_BUILDERS, *_BY_RULES[Rules.TIMEPLUS]})
"""Those of both dialects."""

_NAMES: Mapping[Rules, Mapping[pa.DataType, str]] = {
    Rules.TIMEPLUS: {
        pa.bool_(): "bool",
        pa.int8(): "int8",
        pa.int16(): "int16",
        pa.int32(): "int32",
        pa.int64(): "int64",
        pa.uint8(): "uint8",
        pa.uint16(): "uint16",
        pa.uint32(): "uint32",
        pa.uint64(): "uint64",
        pa.float32(): "float32",
        pa.float64(): "float64",
        pa.string(): "string",
        pa.binary(): "bytea",
        pa.date32(): "date",
        pa.time64("us"): "time",
        INSTANT: "datetime64(6, 'UTC')",
        LOCAL: "timestamp without time zone",
        pa.timestamp("ms", tz="UTC"): "datetime64(3, 'UTC')",
        pa.timestamp("s", tz="UTC"): "datetime('UTC')",
    },
    Rules.RISINGWAVE: {
        pa.bool_(): "boolean",
        pa.int8(): "tinyint",
        pa.int16(): "smallint",
        pa.int32(): "integer",
        pa.int64(): "bigint",
        pa.uint8(): "uint8",
        pa.uint16(): "uint16",
        pa.uint32(): "uint32",
        pa.uint64(): "uint64",
        pa.float32(): "real",
        pa.float64(): "double precision",
        pa.string(): "varchar",
        pa.binary(): "bytea",
        pa.date32(): "date",
        pa.time64("us"): "time",
        INSTANT: "timestamptz",
        LOCAL: "timestamp",
        pa.timestamp("ms", tz="UTC"): "timestamptz",
        pa.timestamp("s", tz="UTC"): "timestamptz",
    },
}


def type_shown(column: Column | Included, rules: Rules) -> str:
    """The type of a column as it is declared: ``jsonb`` of texts that are documents, ``json`` of texts of them."""
    told = column.form or column.declared if isinstance(column, Column) else ""
    return told or display(column.type, rules)


def display(data_type: pa.DataType, rules: Rules) -> str:
    """The name of an Arrow type; ``arrow(display(t, rules), rules)`` is t for every type that a column can have."""
    name = _NAMES[rules].get(data_type)
    if name is not None:
        return name
    if pa.types.is_decimal(data_type):
        return f"{'decimal' if rules == Rules.TIMEPLUS else 'numeric'}({data_type.precision}, {data_type.scale})"
    if pa.types.is_list(data_type):
        inner = display(data_type.value_type, rules)
        return f"array({inner})" if rules == Rules.TIMEPLUS else f"{inner}[]"
    if pa.types.is_map(data_type):
        return f"map({display(data_type.key_type, rules)}, {display(data_type.item_type, rules)})"
    if pa.types.is_struct(data_type):
        return _display_struct(data_type, rules)
    return str(data_type)


def _display_struct(data_type: pa.StructType, rules: Rules) -> str:
    fields = [data_type.field(index) for index in range(data_type.num_fields)]
    numbered = [str(place) for place in range(1, len(fields) + 1)] == [field.name for field in fields]
    inside = ", ".join(("" if numbered else f"{field.name} ") + display(field.type, rules) for field in fields)
    return f"tuple({inside})" if rules == Rules.TIMEPLUS else f"struct<{inside}>"
