"""Conversions: from one type to another, with what becomes of a value that has none."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from sql.expressions.engine import type_name
from sql.functions.registry import Registry, Unfit
from sql.functions.typed import Typed, filled

_INTEGERS = {
    "int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64(),
    "uint8": pa.uint8(), "uint16": pa.uint16(), "uint32": pa.uint32(), "uint64": pa.uint64(),
    "int": pa.int32(), "bigint": pa.int64(),
}  # fmt: skip
_FLOATS = {"float": pa.float64(), "float32": pa.float32(), "float64": pa.float64()}
_WHOLE = "^[+-]?[0-9]+$"
_REAL = "^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$|^[+-]?([iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN])$"


def to_integer(value: Typed, kind: pa.DataType) -> exp.Expr:
    """Digits beyond the point are cut off; a text must be a whole number; a time is its seconds, a date its days."""
    name = type_name(kind)
    if value.is_text:
        # The engine would round 2.5, and take 1e3 and blanks.
        return filled(f"TRY_CAST(CASE WHEN regexp_matches({{0}}, '{_WHOLE}') THEN {{0}} END AS {name})", [value.tree])
    if value.is_instant:
        return filled(f"TRY_CAST(CAST(floor(epoch({{0}})) AS BIGINT) AS {name})", [value.tree])
    if value.is_date:
        return filled(f"TRY_CAST(date_diff('day', DATE '1970-01-01', {{0}}) AS {name})", [value.tree])
    if value.is_float or value.is_decimal:
        return filled(f"TRY_CAST(trunc({{0}}) AS {name})", [value.tree])
    return filled(f"TRY_CAST({{0}} AS {name})", [value.tree])


def to_float(value: Typed, kind: pa.DataType) -> exp.Expr:
    name = type_name(kind)
    if value.is_text:
        return filled(f"TRY_CAST(CASE WHEN regexp_matches({{0}}, '{_REAL}') THEN {{0}} END AS {name})", [value.tree])
    if value.is_instant:
        return filled(f"CAST(epoch({{0}}) AS {name})", [value.tree])
    return filled(f"CAST({{0}} AS {name})", [value.tree])


def to_string(arguments: Sequence[Typed]) -> Typed:
    """As ClickHouse writes it: a float without a point where it is whole, a time without its zone."""
    value = arguments[0]
    if value.is_text:
        return value
    if value.is_float:
        return value.of(_float_text(value), pa.string())
    if value.is_instant:
        zone = arguments[1].tree if len(arguments) > 1 else exp.Literal.string("UTC")
        digits = {"s": 0, "ms": 3, "us": 6, "ns": 6}[value.type.unit]
        pattern = "%Y-%m-%d %H:%M:%S" + (".%g" if digits == 3 else ".%f" if digits == 6 else "")
        return value.of(filled(f"strftime(timezone({{1}}, {{0}}), '{pattern}')", [value.tree, zone]), pa.string())
    if pa.types.is_binary(value.type):
        return value.of(filled("decode({0})", [value.tree]), pa.string())
    if value.is_decimal:
        # Without the zeros at the end.
        return value.of(filled("CASE WHEN contains(CAST({0} AS VARCHAR), '.') THEN rtrim(rtrim(CAST({0} AS VARCHAR), '0'), '.') ELSE CAST({0} AS VARCHAR) END", [value.tree]), pa.string())
    if value.is_list:
        return value.of(_list_text(value), pa.string())
    return value.of(filled("CAST({0} AS VARCHAR)", [value.tree]), pa.string())


def _float_text(value: Typed) -> exp.Expr:
    # Whole numbers below 1e21 are written out.
    return filled(
        "CASE WHEN abs({0}) < 1e21 AND {0} = trunc({0}) THEN CAST(CAST({0} AS HUGEINT) AS VARCHAR) "
        "ELSE regexp_replace(regexp_replace(CAST({0} AS VARCHAR), '\\.0$', ''), 'e([+-])0?([0-9]+)$', 'e\\1\\2') END",
        [value.tree],
    )


def _list_text(value: Typed) -> exp.Expr:
    inner = value.type.value_type
    shown = "'''' || x || ''''" if pa.types.is_string(inner) else "CAST(x AS VARCHAR)"
    return filled(f"'[' || array_to_string(list_transform({{0}}, lambda x: coalesce({shown}, 'NULL')), ',') || ']'", [value.tree])


def to_boolean(value: Typed) -> exp.Expr:
    if value.is_number:
        return filled("({0} <> 0)", [value.tree])
    return filled("CAST({0} AS BOOLEAN)", [value.tree])


def to_date(arguments: Sequence[Typed]) -> exp.Expr:
    value = arguments[0]
    zone = arguments[1].tree if len(arguments) > 1 else exp.Literal.string("UTC")
    if value.is_integer:
        return filled("CASE WHEN {0} < 65536 THEN DATE '1970-01-01' + CAST({0} AS INTEGER) ELSE CAST(timezone({1}, to_timestamp({0})) AS DATE) END", [value.tree, zone])
    if value.is_instant:
        return filled("CAST(timezone({1}, {0}) AS DATE)", [value.tree, zone])
    if value.is_text:
        return filled("TRY_CAST(substring({0}, 1, 10) AS DATE)", [value.tree])
    return filled("CAST({0} AS DATE)", [value.tree])


def to_instant(arguments: Sequence[Typed], *, seconds: bool) -> exp.Expr:
    """A text without a zone is of the zone given, UTC if none is."""
    value = arguments[0]
    zone = arguments[-1].tree if len(arguments) > 1 and arguments[-1].is_text else exp.Literal.string("UTC")
    if value.is_text:
        tree = filled("CASE WHEN regexp_matches({0}, '(Z|[+-][0-9]{2}(:?[0-9]{2})?)$') AND length({0}) > 10 THEN TRY_CAST({0} AS TIMESTAMPTZ) ELSE timezone({1}, TRY_CAST({0} AS TIMESTAMP)) END", [value.tree, zone])
    elif value.is_number:
        tree = filled("to_timestamp({0})", [value.tree])
    elif value.is_date:
        tree = filled("timezone({1}, CAST({0} AS TIMESTAMP))", [value.tree, zone])
    else:
        tree = value.tree
    return filled("date_trunc('second', {0})", [tree]) if seconds else tree


def decimal(arguments: Sequence[Typed], precision: int) -> tuple[exp.Expr, pa.DataType]:
    scale = arguments[1].literal if len(arguments) > 1 else 0
    if not isinstance(scale, int) or not 0 <= scale <= precision:
        raise Unfit(f"takes a scale from 0 to {precision}, written out")
    kind = pa.decimal128(precision, scale)
    value = arguments[0]
    tree = value.tree
    if value.is_float:
        # Digits beyond the scale are cut off.
        tree = filled(f"trunc({{0}}, {scale})", [tree])
    return filled(f"TRY_CAST({{0}} AS {type_name(kind)})", [tree]), kind


def _forms(registry: Registry, name: str, meaning: str, convert: object, kind: pa.DataType | None, default: str, most: int = 1) -> None:
    """``to_x``, and what it gives for a value that has none: ``_or_null``, ``_or_zero``, ``_or_default``."""

    def made(arguments: Sequence[Typed]) -> exp.Expr:
        return convert(arguments)  # type: ignore[operator, no-any-return]

    def tried(arguments: Sequence[Typed]) -> exp.Expr:
        return filled("TRY({0})", [made(arguments)])

    def or_zero(arguments: Sequence[Typed]) -> exp.Expr:
        return filled(f"CASE WHEN {{0}} IS NULL THEN NULL ELSE coalesce({{1}}, {default}) END", [arguments[0].tree, tried(arguments)])

    def or_default(arguments: Sequence[Typed]) -> exp.Expr:
        other = arguments[-1].tree if len(arguments) > 1 else filled(default, [])
        return filled("CASE WHEN {0} IS NULL THEN NULL ELSE coalesce({1}, {2}) END", [arguments[0].tree, tried(arguments[:1]), other])

    add = registry.add
    more = "[, zone]" if most == 2 else ""
    add(f"{name}(x{more})", meaning, made, kind, arity=(1, most), group="conversions")
    add(f"{name}_or_null(x{more})", f"{meaning}; NULL where it is none", tried, kind, arity=(1, most), group="conversions")
    add(f"{name}_or_zero(x{more})", f"{meaning}; {default} where it is none", or_zero, kind, arity=(1, most), group="conversions")
    add(f"{name}_or_default(x[, other])", f"{meaning}; other, or {default}, where it is none", or_default, kind, arity=(1, 2), group="conversions")


def register(registry: Registry) -> None:
    for name, kind in _INTEGERS.items():
        _forms(registry, f"to_{name}", f"as {kind}; digits beyond the point are cut off", lambda given, kind=kind: to_integer(given[0], kind), kind, "0")
    for name, kind in _FLOATS.items():
        _forms(registry, f"to_{name}", f"as {kind}", lambda given, kind=kind: to_float(given[0], kind), kind, "0")
    _forms(registry, "to_date", "the day of a text, a number of days or a time", to_date, pa.date32(), "DATE '1970-01-01'", most=2)
    _forms(registry, "to_datetime", "a time in whole seconds", lambda given: to_instant(given, seconds=True), None, "TIMESTAMPTZ '1970-01-01 00:00:00+00'", most=2)
    add = registry.add
    add("to_datetime64(x[, digits[, zone]])", "a time with digits of seconds", lambda given: to_instant(given, seconds=False), arity=(1, 3), group="conversions", aliases="to_time parse_datetime64_best_effort parse_datetime_best_effort")
    add("to_string(x[, zone])", "as a text", to_string, pa.string(), arity=(1, 2), group="conversions")
    add("to_bool(x)", "as a truth value", lambda given: to_boolean(given[0]), arity=(1, 1), group="conversions")
    for digits in (32, 64, 128):
        precision = {32: 9, 64: 18, 128: 38}[digits]

        def to_decimal(arguments: Sequence[Typed], precision: int = precision) -> Typed:
            tree, kind = decimal(arguments, precision)
            return arguments[0].of(tree, kind)

        add(f"to_decimal{digits}(x, scale)", f"as decimal({precision}, scale)", to_decimal, arity=(2, 2), group="conversions")
        add(f"to_decimal{digits}_or_null(x, scale)", "as a decimal; NULL where it is none", lambda given, precision=precision: filled("TRY({0})", [decimal(given, precision)[0]]), arity=(2, 2), group="conversions")
        add(f"to_decimal{digits}_or_zero(x, scale)", "as a decimal; 0 where it is none", lambda given, precision=precision: filled("CASE WHEN {0} IS NULL THEN NULL ELSE coalesce(TRY({1}), 0) END", [given[0].tree, decimal(given, precision)[0]]), arity=(2, 2), group="conversions")
    add("reinterpret_as_uint64(x)", "the bits of a whole number without its sign", "CAST(CASE WHEN {0} < 0 THEN CAST({0} AS HUGEINT) + CAST(18446744073709551616 AS HUGEINT) ELSE {0} END AS UBIGINT)", pa.uint64(), group="conversions")
