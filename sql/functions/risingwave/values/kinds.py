"""The types of PostgreSQL as Arrow has them, and the type that values of several types have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError
from dovetail.changelog.wording import type_words
from dovetail.sql.expressions.engine import type_name
from dovetail.sql.functions import interval_columns
from dovetail.sql.functions.documents import JSON
from dovetail.sql.functions.typed import Typed, filled

SMALL, INT, BIG = pa.int16(), pa.int32(), pa.int64()
REAL, DOUBLE = pa.float32(), pa.float64()
TEXT, BYTES, BOOL = pa.string(), pa.binary(), pa.bool_()
DATE, CLOCK = pa.date32(), pa.time64("us")
LOCAL, INSTANT = pa.timestamp("us"), pa.timestamp("us", tz="UTC")
INTERVAL = interval_columns.INTERVAL
NUMERIC_DIGITS = 38
NUMERIC = pa.decimal128(28, 10)
"""Of a numeric without digits of its own; RisingWave keeps 28 digits."""

_NAMES = {
    SMALL: "smallint", INT: "integer", BIG: "bigint", REAL: "real", DOUBLE: "double precision", TEXT: "varchar",
    BYTES: "bytea", BOOL: "boolean", DATE: "date", CLOCK: "time", LOCAL: "timestamp", INSTANT: "timestamptz",
    INTERVAL: "interval", JSON: "jsonb",
}  # fmt: skip


def name_of(kind: pa.DataType) -> str:
    """As an error says it."""
    if pa.types.is_decimal(kind):
        return "numeric"
    if pa.types.is_list(kind):
        return f"{name_of(kind.value_type)}[]"
    if pa.types.is_map(kind):
        return f"map({name_of(kind.key_type)}, {name_of(kind.item_type)})"
    if pa.types.is_null(kind):
        return "NULL"
    return _NAMES.get(kind, type_words(kind))


def engine_name(kind: pa.DataType) -> str:
    if kind == INTERVAL:
        return "INTERVAL"
    if kind == JSON:
        return "TEXT"
    if pa.types.is_list(kind):
        return f"{engine_name(kind.value_type)}[]"
    if pa.types.is_map(kind):
        return f"MAP({engine_name(kind.key_type)}, {engine_name(kind.item_type)})"
    if pa.types.is_struct(kind):
        parts = [f"{exp.to_identifier(field.name, quoted=True).sql()} {engine_name(field.type)}" for field in kind]
        return f"STRUCT({', '.join(parts)})"
    return type_name(kind)


def numeric(whole: int, scale: int) -> pa.DataType:
    """With so many digits before the point and after it, as far as 38 digits reach."""
    scale = min(scale, NUMERIC_DIGITS)
    return pa.decimal128(min(NUMERIC_DIGITS, max(whole, 1) + scale), scale)


def kind_of(value: Typed) -> pa.DataType:
    """The type as PostgreSQL knows it: what it has no type for is of the next wider one."""
    return standard(value.type if value.known_type is None else value.known_type)


def standard(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_integer(kind):
        bits = kind.bit_width * (2 if pa.types.is_unsigned_integer(kind) else 1)
        return SMALL if bits <= 16 else INT if bits == 32 else BIG if bits == 64 else numeric(20, 0)
    if pa.types.is_timestamp(kind):
        return INSTANT if kind.tz else LOCAL
    if pa.types.is_large_string(kind):
        return TEXT
    if pa.types.is_large_binary(kind):
        return BYTES
    if pa.types.is_time(kind):
        return CLOCK
    if pa.types.is_decimal(kind):
        return pa.decimal128(min(kind.precision, NUMERIC_DIGITS), kind.scale)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(standard(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(standard(kind.key_type), standard(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, standard(field.type)) for field in kind])
    return kind


def is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def is_unknown(value: Typed) -> bool:
    """Whether it is a text in quotes, which becomes what its place asks for, or NULL."""
    return value.is_null or (isinstance(value.literal, str) and kind_of(value) == TEXT)


def as_numeric(kind: pa.DataType) -> pa.DataType:
    """The numeric that holds every value of an integer type."""
    if pa.types.is_decimal(kind):
        return kind
    return numeric({SMALL: 5, INT: 10}.get(kind, 19), 0)


def typed(value: Typed, template: str, trees: Sequence[exp.Expr], kind: pa.DataType) -> Typed:
    """A template over trees, of a type that is known."""
    return value.of(filled(template, trees), kind)


def quoted(text: str) -> exp.Literal:
    """A text as the engine has it. Patterns go into templates in this way: {2} in a template is a place."""
    return exp.Literal.string(text)


_RANKS = [SMALL, INT, BIG, None, REAL, DOUBLE]


def _rank(kind: pa.DataType) -> int:
    return 3 if pa.types.is_decimal(kind) else _RANKS.index(kind)


def common_number(kinds: Iterable[pa.DataType]) -> pa.DataType:
    """The widest: integers, then numeric, then the floats; a numeric takes the digits of all."""
    found = list(kinds)
    widest = max(found, key=_rank)
    if not pa.types.is_decimal(widest):
        return widest
    decimals = [as_numeric(kind) for kind in found]
    return numeric(max(one.precision - one.scale for one in decimals), max(one.scale for one in decimals))


_TIMES = [DATE, LOCAL, INSTANT]


def common_kind(kinds: Sequence[pa.DataType]) -> pa.DataType | None:
    """The type in which all can be said; None where there is none."""
    first = kinds[0]
    if all(kind == first for kind in kinds):
        return first
    if all(is_number(kind) for kind in kinds):
        return common_number(kinds)
    if all(kind in _TIMES for kind in kinds):
        return max(kinds, key=_TIMES.index)
    if all(kind in (TEXT, JSON) for kind in kinds):
        return JSON
    if all(pa.types.is_list(kind) for kind in kinds):
        inner = common_kind([kind.value_type for kind in kinds])
        return None if inner is None else pa.list_(inner)
    if all(pa.types.is_map(kind) for kind in kinds):
        key, item = common_kind([kind.key_type for kind in kinds]), common_kind([kind.item_type for kind in kinds])
        return None if key is None or item is None else pa.map_(key, item)
    if all(pa.types.is_struct(kind) and kind.num_fields == first.num_fields for kind in kinds):
        return _common_row(kinds)
    return None


def _common_row(kinds: Sequence[pa.DataType]) -> pa.DataType | None:
    """Rows are alike by the places of their fields; the names are those of the first that has some of its own."""
    named = next((kind for kind in kinds if kind[0].name != "f1"), kinds[0])
    fields = []
    for place in range(named.num_fields):
        parts = [kind[place].type for kind in kinds if not pa.types.is_null(kind[place].type)]
        common = common_kind(parts) if parts else TEXT
        if common is None:
            return None
        fields.append((named[place].name, common))
    return pa.struct(fields)


def no_common_kind(what: str, kinds: Iterable[pa.DataType]) -> SqlError:
    names = list(dict.fromkeys(name_of(kind) for kind in kinds))
    return SqlError(f"{what} cannot mix {' and '.join(names)}", fix="write x::type on one of them")
