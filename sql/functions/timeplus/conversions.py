"""Conversions: from one type to another, with what becomes of a value that has none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.expressions.engine import type_name
from dovetail.sql.expressions.times.timestamp_precision import marked
from dovetail.sql.expressions.written_values import has_value
from dovetail.sql.functions.registry import Build, Row, Table, Unfit, arity_of
from dovetail.sql.functions.typed import Typed, filled
from dovetail.sql.functions.zones import named_zone

_INTEGERS: Mapping[str, pa.DataType] = {
    "int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64(),
    "uint8": pa.uint8(), "uint16": pa.uint16(), "uint32": pa.uint32(), "uint64": pa.uint64(),
    "int": pa.int32(), "bigint": pa.int64(),
}  # fmt: skip
_FLOATS: Mapping[str, pa.DataType] = {"float": pa.float64(), "float32": pa.float32(), "float64": pa.float64()}
_PRECISION = {32: 9, 64: 18, 128: 38}
"""Digits of a decimal, by its bits."""

UTC = exp.Literal.string("UTC")
_WHOLE = exp.Literal.string("^[+-]?[0-9]+$")
_REAL = exp.Literal.string(
    "^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$|^[+-]?([iI][nN][fF]([iI][nN][iI][tT][yY])?|[nN][aA][nN])$"
)
_WITH_ZONE = exp.Literal.string(r"[0-9T:.](Z|[+-][0-9]{2}:?[0-9]{2})$")
_DAY_LATER = "a day that a month does not have is no date, where ClickHouse counts on into the next"
_NULLABLE = "the type's default also of a nullable text, where ClickHouse gives NULL"


def zone_of(arguments: Sequence[Typed], position: int) -> exp.Expr:
    """The time zone at a position; where none is given, the one that the first argument is in, which is UTC else."""
    if len(arguments) > position:
        return named_zone(arguments[position])
    zone = arguments[0].zone if arguments else None
    return UTC if zone is None else exp.Literal.string(zone)


def expect_read(value: Typed, tree: exp.Expr) -> None:
    """Raises Unfit where ``tree`` makes nothing of a text that is written out."""
    if isinstance(value.literal, str) and tree.find(exp.Column) is None and not has_value(tree):
        raise Unfit(f"cannot read '{value.literal}'")


def in_zone(value: Typed, tree: exp.Expr, zones: Sequence[Typed], unit: str | None = None) -> Typed:
    """A time that remembers the zone that was written out for it, or that of the value it was made of.

    unit  how fine the function has it; None: as fine as the value
    """
    if zones and not isinstance(zones[0].literal, str):
        raise Unfit("takes its time zone as a text in quotes: 'Europe/Berlin'")
    written = str(named_zone(zones[0]).this) if zones else value.zone
    unit = unit or (value.type.unit if value.is_instant else "us")
    made = value.of(marked(tree, unit), pa.timestamp(unit, "UTC"))
    made.zone = written
    return made


def _expect_scalar(value: Typed) -> None:
    if value.is_list or value.is_map or value.is_struct:
        raise Unfit(f"reads a number, a text or a time, and no {value.family}")


# Numbers


def to_integer(value: Typed, kind: pa.DataType) -> exp.Expr:
    """Digits beyond the point are cut off; a text must be a whole number; a time is its seconds, a date its days."""
    _expect_scalar(value)
    tree = value.tree
    if value.is_text:
        # The engine would round 2.5, and take 1e3 and blanks.
        tree = filled("CASE WHEN regexp_matches({0}, {1}) THEN {0} END", [tree, _WHOLE])
    elif value.is_instant:
        tree = filled("CAST(floor(epoch({0})) AS BIGINT)", [tree])
    elif value.is_date:
        tree = filled("date_diff('day', DATE '1970-01-01', {0})", [tree])
    elif value.is_float or value.is_decimal:
        tree = filled("trunc({0})", [tree])
    return filled(f"TRY_CAST({{0}} AS {type_name(kind)})", [tree])


def to_float(value: Typed, kind: pa.DataType) -> exp.Expr:
    _expect_scalar(value)
    tree = value.tree
    if value.is_text:
        tree = filled("CASE WHEN regexp_matches({0}, {1}) THEN {0} END", [tree, _REAL])
    elif value.is_instant:
        tree = filled("epoch({0})", [tree])
    elif value.is_date:
        tree = filled("date_diff('day', DATE '1970-01-01', {0})", [tree])
    return filled(f"TRY_CAST({{0}} AS {type_name(kind)})", [tree])


def to_decimal(value: Typed, kind: pa.DataType) -> exp.Expr:
    """Digits beyond the scale are cut off."""
    _expect_scalar(value)
    tree = value.tree
    if value.is_text:
        cut = exp.Literal.string(f"([.][0-9]{{{kind.scale}}})[0-9]+$")
        # The engine does not hold a text with an exponent to the width of its type, but a sum.
        wide = f"DECIMAL(38, {kind.scale})"
        tree = filled(f"TRY_CAST(regexp_replace({{0}}, {{1}}, '\\1') AS {wide}) + CAST(0 AS {wide})", [tree, cut])
    elif value.is_float:
        tree = filled(f"trunc({{0}} * 1e{kind.scale}) / 1e{kind.scale}", [tree])
    elif value.is_decimal and value.type.scale > kind.scale:
        unit = 10 ** (value.type.scale - kind.scale)
        whole = filled(f"CAST({{0}} * {10**value.type.scale} AS HUGEINT)", [tree])
        return scaled(filled(f"({{0}} // {unit})", [whole]), kind)
    return filled(f"TRY_CAST({{0}} AS {type_name(kind)})", [tree])


def scaled(whole: exp.Expr, kind: pa.DataType) -> exp.Expr:
    """A decimal from the whole number that it is at its scale, exactly."""
    if kind.scale == 0:
        return filled(f"TRY_CAST({{0}} AS {type_name(kind)})", [whole])
    unit = f"CAST('0.{'0' * (kind.scale - 1)}1' AS DECIMAL({kind.scale}, {kind.scale}))"
    return filled(f"TRY_CAST(CAST({{0}} AS DECIMAL({38 - kind.scale}, 0)) * {unit} AS {type_name(kind)})", [whole])


def to_boolean(value: Typed) -> exp.Expr:
    _expect_scalar(value)
    return filled("({0} <> 0)" if value.is_number else "CAST({0} AS BOOLEAN)", [value.tree])


# Texts


def to_string(arguments: Sequence[Typed]) -> Typed:
    """As ClickHouse writes it: a float without a point where it is whole, a time without its zone."""
    value = arguments[0]
    return value if value.is_text else value.of(_text(value, zone_of(arguments, 1)), pa.string())


def _text(value: Typed, zone: exp.Expr) -> exp.Expr:
    tree = value.tree
    if value.is_float:
        return _float_text(tree)
    if value.is_instant:
        fraction = {"s": "", "ms": ".%g"}.get(value.type.unit, ".%f")
        return filled(f"strftime(timezone({{1}}, {{0}}), '%Y-%m-%d %H:%M:%S{fraction}')", [tree, zone])
    if pa.types.is_binary(value.type):
        return filled("decode({0})", [tree])
    if value.is_decimal and value.type.scale:
        # Without the zeros at the end.
        return filled("rtrim(rtrim(CAST({0} AS VARCHAR), '0'), '.')", [tree])
    if value.is_list:
        inner = _part_text(value.of(exp.column("each_"), value.type.value_type), zone)
        items = filled("list_transform({0}, lambda each_: {1})", [tree, inner])
        return filled("'[' || array_to_string({0}, ',') || ']'", [items])
    if value.is_map:
        key = _part_text(value.of(filled("entry_.key", []), value.type.key_type), zone)
        item = _part_text(value.of(filled("entry_.value", []), value.type.item_type), zone)
        pairs = filled("list_transform(map_entries({0}), lambda entry_: {1} || ':' || {2})", [tree, key, item])
        return filled("'{' || array_to_string({0}, ',') || '}'", [pairs])
    if value.is_struct:
        return _tuple_text(value, zone)
    return filled("CAST({0} AS VARCHAR)", [tree])


def _tuple_text(value: Typed, zone: exp.Expr) -> exp.Expr:
    fields = [value.type.field(place) for place in range(value.type.num_fields)]
    parts = [
        _part_text(
            value.of(filled("struct_extract({0}, {1})", [value.tree, exp.Literal.string(field.name)]), field.type), zone
        )
        for field in fields
    ]
    joined = " || ',' || ".join(f"{{{place}}}" for place in range(len(parts)))
    return filled(f"'(' || {joined} || ')'", parts)


def _part_text(value: Typed, zone: exp.Expr) -> exp.Expr:
    """A part of an array, a map or a tuple: texts and times in quotes, NULL written out."""
    shown = _text(value, zone)
    if value.is_text:
        shown = filled("'''' || replace(replace({0}, '\\', '\\\\'), '''', '\\''') || ''''", [value.tree])
    elif value.is_instant or value.is_date:
        shown = filled("'''' || {0} || ''''", [shown])
    return filled("coalesce({0}, 'NULL')", [shown])


def _float_text(tree: exp.Expr) -> exp.Expr:
    # Whole numbers below 1e21 and what begins six places behind the point are written out; exponents are without + and
    # leading zeros.
    small = " ".join(
        f"WHEN CAST({{0}} AS VARCHAR) LIKE '%e-0{places}' THEN CASE WHEN {{0}} < 0 THEN '-' ELSE '' END || "
        f"'0.{'0' * (places - 1)}' || regexp_replace(CAST({{0}} AS VARCHAR), '[-.]|e.*$', '', 'g')"
        for places in (5, 6)
    )
    return filled(
        "CASE WHEN isnan({0}) THEN 'nan' "
        "WHEN {0} = 0 THEN CASE WHEN signbit({0}) THEN '-0' ELSE '0' END "
        "WHEN abs({0}) < 1e21 AND {0} = trunc({0}) THEN CAST(CAST({0} AS HUGEINT) AS VARCHAR) "
        f"{small} "
        "ELSE regexp_replace(regexp_replace(CAST({0} AS VARCHAR), '\\.0$', ''), 'e[+]?(-?)0*([0-9]+)$', 'e\\1\\2') END",
        [tree],
    )


# Dates and times


def to_date(arguments: Sequence[Typed]) -> exp.Expr:
    """A number below 65536 is of days, above of seconds."""
    value, zone = arguments[0], zone_of(arguments, 1)
    _expect_scalar(value)
    if value.is_integer:
        seconds = "CAST(timezone({1}, to_timestamp({0})) AS DATE)"
        days = "DATE '1970-01-01' + CAST({0} AS INTEGER)"
        return filled(f"CASE WHEN {{0}} < 65536 THEN {days} ELSE {seconds} END", [value.tree, zone])
    if value.is_instant:
        return filled("CAST(timezone({1}, {0}) AS DATE)", [value.tree, zone])
    if value.is_text:
        return filled("TRY_CAST(substring({0}, 1, 10) AS DATE)", [value.tree])
    return filled("CAST({0} AS DATE)", [value.tree])


def instant(value: Typed, zone: exp.Expr, digits: int = 6) -> exp.Expr:
    """A time with so many digits of seconds; a text without a zone is of the zone given."""
    _expect_scalar(value)
    if value.is_text:
        tree = filled(
            "CASE WHEN regexp_matches({0}, {2}) THEN TRY_CAST({0} AS TIMESTAMPTZ) "
            "ELSE timezone({1}, TRY_CAST({0} AS TIMESTAMP)) END",
            [value.tree, zone, _WITH_ZONE],
        )
    elif value.is_number:
        tree = filled("to_timestamp({0})", [value.tree])
    elif value.is_date:
        tree = filled("timezone({1}, CAST({0} AS TIMESTAMP))", [value.tree, zone])
    else:
        tree = value.tree
    if digits >= 6:
        return tree
    if digits in (0, 3):
        return filled(f"date_trunc('{'second' if digits == 0 else 'millisecond'}', {{0}})", [tree])
    unit = 10 ** (6 - digits)
    return filled(f"make_timestamptz(epoch_us({{0}}) - (epoch_us({{0}}) % {unit} + {unit}) % {unit})", [tree])


def to_seconds(arguments: Sequence[Typed]) -> Typed:
    """``to_datetime(x[, zone])``"""
    return in_zone(arguments[0], instant(arguments[0], zone_of(arguments, 1), digits=0), arguments[1:], "s")


def to_instant(arguments: Sequence[Typed]) -> Typed:
    """``to_datetime64(x[, digits[, zone]])``, ``to_time(x[, zone])``"""
    value, *rest = arguments
    digits = next((one.literal for one in rest if isinstance(one.literal, int)), 6)
    zones = [one for one in rest if one.is_text]
    return in_zone(value, instant(value, zone_of([value, *zones], 1), int(digits)), zones, unit_of_digits(int(digits)))


def unit_of_digits(digits: int) -> str:
    return "s" if digits == 0 else "ms" if digits <= 3 else "us"


# UUIDs


def _uuid(arguments: Sequence[Typed]) -> exp.Expr:
    return filled("CAST(TRY_CAST({0} AS UUID) AS VARCHAR)", [arguments[0].tree])


# The forms of each: to_x, to_x_or_null, to_x_or_zero, to_x_or_default


def _forms(
    usage: str, meaning: str, build: Build, kind: pa.DataType | None, default: str, *, defaulted: bool = True
) -> list[Row]:
    """``to_x``, and what it gives for a value that has none: ``_or_null``, ``_or_zero``, ``_or_default``."""
    name, _, rest = usage.partition("(")
    least = arity_of(usage)[0]

    def tried(arguments: Sequence[Typed]) -> exp.Expr:
        built = build(arguments)
        assert not isinstance(built, str)
        return filled("TRY({0})", [built.tree if isinstance(built, Typed) else built])

    def or_zero(arguments: Sequence[Typed]) -> exp.Expr:
        return _otherwise(arguments[0], tried(arguments), filled(default, []))

    def or_default(arguments: Sequence[Typed]) -> exp.Expr:
        other = arguments[least].tree if len(arguments) > least else filled(default, [])
        return _otherwise(arguments[0], tried(arguments[:least]), other)

    with_other = f"{name}_or_default({rest.partition('[')[0].removesuffix(')')}[, other])"
    return [
        Row(usage, meaning, _reading(build), kind),
        Row(f"{name}_or_null({rest}", f"{meaning}; NULL if it cannot be read", tried, kind),
        Row(f"{name}_or_zero({rest}", f"{meaning}; {default} if it cannot be read", or_zero, kind),
        *[Row(with_other, f"{meaning}; other, or {default}, if it cannot be read", or_default, kind, differs=_NULLABLE)
          for _ in range(defaulted)],
    ]  # fmt: skip


def _reading(build: Build) -> Build:
    """As ``build``, for a text that is written out and can be read, or for what is in rows."""

    def checked(arguments: Sequence[Typed]) -> Typed | exp.Expr | str:
        built = build(arguments)
        assert not isinstance(built, str)
        expect_read(arguments[0], built.tree if isinstance(built, Typed) else built)
        return built

    return checked


def _otherwise(value: Typed, found: exp.Expr, other: exp.Expr) -> exp.Expr:
    return filled("CASE WHEN {0} IS NOT NULL THEN coalesce({1}, {2}) END", [value.tree, found, other])


def _of_first(convert: Callable[[Typed, pa.DataType], exp.Expr], kind: pa.DataType) -> Build:
    return lambda arguments: convert(arguments[0], kind)


def _decimal(precision: int) -> Build:
    def build(arguments: Sequence[Typed]) -> Typed:
        scale = arguments[1].literal
        if not isinstance(scale, int) or not 0 <= scale <= precision:
            raise Unfit(f"takes a scale from 0 to {precision}, written out")
        kind = pa.decimal128(precision, scale)
        return arguments[0].of(to_decimal(arguments[0], kind), kind)

    return build


def _of_time(usage: str, meaning: str, build: Build, *, defaulted: bool = False) -> list[Row]:
    """How fine a time is, its arguments say."""
    return _forms(usage, meaning, build, None, "TIMESTAMPTZ '1970-01-01 00:00:00+00'", defaulted=defaulted)


_TEXT, _DAY = pa.string(), pa.date32()
_UNSIGNED = "CASE WHEN {0} < 0 THEN CAST({0} AS HUGEINT) + CAST(18446744073709551616 AS HUGEINT) ELSE {0} END"

FUNCTIONS: Table = (
    *(row for name, kind in _INTEGERS.items() for row in _forms(
        f"to_{name}(x)", f"as {kind}; digits beyond the point are cut off", _of_first(to_integer, kind), kind, "0")),
    *(row for name, kind in _FLOATS.items() for row in _forms(
        f"to_{name}(x)", f"as {kind}", _of_first(to_float, kind), kind, "0")),
    *(row for bits, precision in _PRECISION.items() for row in _forms(
        f"to_decimal{bits}(x, scale)", f"as decimal({precision}, scale); digits beyond are cut off",
        _decimal(precision), None, "0")),
    *_forms("to_date(x[, zone])", "the day of a text, a number of days or a time", to_date, _DAY, "DATE '1970-01-01'"),
    *_of_time("to_datetime(x[, zone])", "a time in whole seconds", to_seconds, defaulted=True),
    *_of_time("to_datetime64(x[, digits[, zone]])", "a time with digits of seconds", to_instant),
    *_of_time("parse_datetime_best_effort(text[, zone])", "the time that a text says", to_seconds),
    *_of_time("parse_datetime64_best_effort(text[, digits[, zone]])", "the same, with digits of seconds", to_instant),
    *_forms("to_uuid(text)", "a UUID, as a text in small letters", _uuid, _TEXT,
            "'00000000-0000-0000-0000-000000000000'"),
    Row("to_date32(x[, zone])", "as to_date", _reading(to_date), _DAY),
    Row("to_time(x[, zone])", "a time", _reading(to_instant)),
    Row("to_string(x[, zone])", "as a text", to_string, _TEXT,
        differs="a comparison is true or false, as in Timeplus, where ClickHouse says 1 or 0"),
    Row("to_bool(x)", "as a truth value", _reading(lambda given: to_boolean(given[0])), pa.bool_()),
    Row("reinterpret_as_uint64(x)", "the bits of a whole number without its sign", _UNSIGNED, pa.uint64()),
)  # fmt: skip
