"""Conversions: ``x::type``, and those that happen where a value of another type is asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError
from dovetail.changelog.formats.text_forms import jsonb_text
from dovetail.sql.functions.documents import JSON, no_document
from dovetail.sql.functions.risingwave.values import byte_strings, intervals, map_entries, texts
from dovetail.sql.functions.risingwave.values.kinds import (
    BOOL,
    BYTES,
    CLOCK,
    DATE,
    INSTANT,
    INT,
    INTERVAL,
    LOCAL,
    NUMERIC,
    NUMERIC_DIGITS,
    REAL,
    TEXT,
    as_numeric,
    common_kind,
    engine_name,
    is_number,
    is_unknown,
    kind_of,
    name_of,
    no_common_kind,
    numeric,
    quoted,
)
from dovetail.sql.functions.typed import Typed, filled, once

_INTEGER = r"^\s*([+-]?[0-9]+)\s*$"
_REAL = r"^\s*([+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|(?i:inf(?:inity)?|nan)))\s*$"
_NUMERIC = r"^\s*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)\s*$"
_ZONE = r"([0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?)\s*(?:[zZ]|[+-][0-9]{2}(?::?[0-9]{2})?)\s*$"
_BLANK_BEFORE_OFFSET = r"(:[0-9]{2}(?:\.[0-9]+)?)\s+([+-][0-9])"
_TRUE = ("t", "tr", "tru", "true", "y", "ye", "yes", "on", "1")
_FALSE = ("f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0")

Convert = Callable[[Typed, pa.DataType], exp.Expr | None]


def cast(value: Typed, kind: pa.DataType) -> Typed:
    """``value::kind``. A value that the type cannot hold fails, and is NULL. Raises SqlError where no cast is."""
    if value.is_null:
        return value.of(filled(f"CAST(NULL AS {engine_name(kind)})", []), kind)
    have = kind_of(value)
    if have == kind:
        return value.of(_plain(value, kind), kind)
    if have == TEXT and isinstance(value.literal, str):
        known = _from_literal(value, kind)
        if known is not None:
            return known
    if kind == JSON and isinstance(value.literal, str):
        return Typed(quoted(_document(value.literal)), value.ask, JSON, value.literal)
    made = _conversion(have, kind)(value, kind)
    if made is None:
        raise SqlError(
            f"there is no cast from {name_of(have)} to {name_of(kind)}",
            fix=f"cast it to varchar, and that to {name_of(kind)}",
        )
    return value.of(made, kind)


def _plain(value: Typed, kind: pa.DataType) -> exp.Expr:
    """The engine gives the literal 5 the type of its surroundings."""
    if value.type == kind and value.literal is None:
        return value.tree
    if isinstance(value.literal, str):
        return value.tree
    return filled(f"CAST({{0}} AS {engine_name(kind)})", [value.tree])


def _from_literal(value: Typed, kind: pa.DataType) -> Typed | None:
    """What a text in quotes means is known here: its digits, the parts of an interval, the elements of an array."""
    text = str(value.literal)
    if kind == INTERVAL:
        return intervals.literal(value, text)
    if pa.types.is_list(kind):
        elements = _array_elements(text)
        inner = [cast(_text_literal(value, one), kind.value_type).tree for one in elements]
        return value.of(filled(f"CAST({{0}} AS {engine_name(kind)})", [exp.Array(expressions=inner)]), kind)
    return None


def _document(text: str) -> str:
    try:
        return jsonb_text(text)
    except ValueError:
        raise no_document(text) from None


def _text_literal(value: Typed, text: str | None) -> Typed:
    if text is None:
        return value.of(exp.Null(), pa.null())
    return Typed(exp.Literal.string(text), value.ask, TEXT, text)


_ELEMENT = re.compile(r'(?:\s*+"((?:[^"\\]|\\.)*+)"\s*+|([^,{}"\\]++))(,|$)')


def _array_elements(text: str) -> list[str | None]:
    """``{1,"a b",NULL}``"""
    body = text.strip()
    if not (body.startswith("{") and body.endswith("}")):
        raise SqlError(f"'{text}' is not an array", fix="ARRAY[1, 2], or '{1,2}'")
    body, elements = body[1:-1], list[str | None]()
    at = 0 if body.strip() else len(body) + 1
    while at <= len(body):
        found = _ELEMENT.match(body, at)
        if found is None:
            raise SqlError(f"'{text}' is not an array of plain values", fix="ARRAY[1, 2], or '{1,2}'")
        quoted, bare, comma = found.groups()
        if quoted is not None:
            elements.append(re.sub(r"\\(.)", r"\1", quoted))
        else:
            elements.append(None if bare.strip().upper() == "NULL" else bare.strip())
        at = found.end()
        if not comma:
            break
    return elements


def _conversion(have: pa.DataType, kind: pa.DataType) -> Convert:
    if kind == TEXT:
        return lambda value, _: texts.text_of(value).tree
    if pa.types.is_floating(have) and pa.types.is_decimal(kind):
        return _float_to_numeric
    if is_number(have) and is_number(kind):
        return _number_to_number
    if pa.types.is_list(have) and pa.types.is_list(kind):
        return _elementwise
    if pa.types.is_struct(have) and pa.types.is_struct(kind):
        return _fieldwise
    if pa.types.is_map(have) and pa.types.is_map(kind):
        return _entrywise
    family = TEXT if have == TEXT else JSON if have == JSON else None
    if family is TEXT:
        return _from_text
    if family is JSON:
        return _from_json
    return _OTHERS.get((have, kind), _none)


def _none(value: Typed, kind: pa.DataType) -> None:
    return None


def _engine(value: Typed, kind: pa.DataType) -> exp.Expr:
    return filled(f"CAST({{0}} AS {engine_name(kind)})", [value.tree])


_number_to_number = _engine
"""Half to even from floats, half away from zero from numeric; beyond the type's range it fails."""


def _float_to_numeric(value: Typed, kind: pa.DataType) -> exp.Expr:
    """The digits that a float is sure of: 15 of a double precision, 6 of a real."""
    sure = 6 if kind_of(value) == REAL else 15
    digits = f"printf('%.{sure - 1}e', CAST({{0}} AS DOUBLE))"
    return _measured(filled(digits, [value.tree]), kind)


def _measured(text: exp.Expr, kind: pa.DataType) -> exp.Expr:
    """The numeric that a text means. The engine does not hold a text with an exponent, 1.5e+08, to the width of its
    type: what has too many digits is found where it is added to, or made narrower.
    """
    wide = f"DECIMAL({NUMERIC_DIGITS}, {kind.scale})"
    return filled(f"CAST(CAST({{0}} AS {wide}) + CAST(0 AS {wide}) AS {engine_name(kind)})", [text])


def _elementwise(value: Typed, kind: pa.DataType) -> exp.Expr:
    element = value.of(exp.column("e_"), kind_of(value).value_type)
    return filled("list_transform({0}, lambda e_: {1})", [value.tree, cast(element, kind.value_type).tree])


def _entrywise(value: Typed, kind: pa.DataType) -> exp.Expr:
    entries = map_entries.by_entry(
        value, lambda key, item: map_entries.row_of(cast(key, kind.key_type).tree, cast(item, kind.item_type).tree)
    )
    return map_entries.from_entries(entries, kind)


def _fieldwise(value: Typed, kind: pa.DataType) -> exp.Expr | None:
    """By the places of the fields."""
    have = kind_of(value)
    if have.num_fields != kind.num_fields:
        return None
    row = exp.column("r_")
    parts = [
        (field.name, value.of(filled("struct_extract({0}, {1})", [row, quoted(was.name)]), was.type), field.type)
        for was, field in zip(have, kind, strict=True)
    ]
    made = exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.to_identifier(name, quoted=True), expression=cast(part, to).tree)
            for name, part, to in parts
        ]
    )
    return once(value.tree, "r_", "CASE WHEN r_ IS NOT NULL THEN {0} END", [made])


def _only(pattern: str, value: Typed, kind: pa.DataType) -> exp.Expr:
    """The engine would take more: 1_000, 0x10, 3.5 as an integer."""
    text = filled("regexp_extract({0}, {1}, 1)", [value.tree, quoted(pattern)])
    return _measured(text, kind) if pa.types.is_decimal(kind) else filled(f"CAST({{0}} AS {engine_name(kind)})", [text])


def _from_text(value: Typed, kind: pa.DataType) -> exp.Expr | None:
    if pa.types.is_integer(kind):
        return _only(_INTEGER, value, kind)
    if pa.types.is_floating(kind):
        return _only(_REAL, value, kind)
    if pa.types.is_decimal(kind):
        return _only(_NUMERIC, value, kind)
    if kind == BYTES:
        return byte_strings.of_text(value.tree)
    made = _TEXT_TO.get(kind)
    pattern, by = (_BLANK_BEFORE_OFFSET, r"\1\2") if kind == INSTANT else (_ZONE, r"\1")
    return None if made is None else filled(made, [value.tree, quoted(pattern), quoted(by)])


def _words(words: Sequence[str], result: str) -> str:
    return " ".join(f"WHEN '{word}' THEN {result}" for word in words)


_TEXT_TO: Mapping[pa.DataType, str] = {
    BOOL: f"CASE lower(trim({{0}})) {_words(_TRUE, 'true')} {_words(_FALSE, 'false')} END",
    DATE: "CAST(CAST(regexp_replace({0}, {1}, {2}) AS TIMESTAMP) AS DATE)",
    LOCAL: "CAST(regexp_replace({0}, {1}, {2}) AS TIMESTAMP)",
    INSTANT: "CAST(regexp_replace({0}, {1}, {2}) AS TIMESTAMPTZ)",
    CLOCK: "CAST({0} AS TIME)",
    INTERVAL: "CAST({0} AS INTERVAL)",
    JSON: "CAST(json({0}) AS VARCHAR)",
}


def _from_json(value: Typed, kind: pa.DataType) -> exp.Expr | None:
    if kind == BOOL:
        return filled("CASE CAST({0} AS VARCHAR) WHEN 'true' THEN true WHEN 'false' THEN false END", [value.tree])
    if is_number(kind):
        if pa.types.is_floating(kind):
            return _only(_NUMERIC, value, kind)
        exact = pa.decimal128(38, 10)
        return cast(value.of(_only(_NUMERIC, value, exact), exact), kind).tree
    return None


_OTHERS: Mapping[tuple[pa.DataType, pa.DataType], Convert] = {
    (BOOL, INT): _engine,
    (INT, BOOL): lambda value, _: filled("{0} <> 0", [value.tree]),
    (DATE, LOCAL): _engine,
    (DATE, INSTANT): lambda value, _: filled("timezone('UTC', CAST({0} AS TIMESTAMP))", [value.tree]),
    (LOCAL, DATE): _engine,
    (LOCAL, INSTANT): lambda value, _: filled("timezone('UTC', {0})", [value.tree]),
    (LOCAL, CLOCK): _engine,
    (INSTANT, LOCAL): lambda value, _: filled("timezone('UTC', {0})", [value.tree]),
    (INSTANT, DATE): lambda value, _: filled("CAST(timezone('UTC', {0}) AS DATE)", [value.tree]),
    (INSTANT, CLOCK): lambda value, _: filled("CAST(timezone('UTC', {0}) AS TIME)", [value.tree]),
    (CLOCK, INTERVAL): lambda value, _: filled(
        "to_microseconds(date_diff('microsecond', TIME '00:00:00', {0}))", [value.tree]
    ),
    (INTERVAL, CLOCK): lambda value, _: filled("TIME '00:00:00' + {0}", [value.tree]),
}


def unified(what: str, values: Sequence[Typed]) -> tuple[list[exp.Expr], pa.DataType]:
    """The values in the type that they have in common; a text in quotes takes the type of the others."""
    kind = kind_in_common(what, values)
    return [cast(value, kind).tree for value in values], kind


def kind_in_common(what: str, values: Sequence[Typed]) -> pa.DataType:
    known = [kind_of(value) for value in values if not is_unknown(value)]
    if not known:
        return TEXT
    kind = common_kind(known)
    if kind is None:
        raise no_common_kind(what, known)
    return kind


def to_numeric(value: Typed) -> Typed:
    """``x::numeric``, without digits: those of the value."""
    have = kind_of(value)
    if isinstance(value.literal, str):
        found = re.fullmatch(r"[+-]?(\d*+)\.?(\d*+)", value.literal.strip())
        if found is not None and (found[1] or found[2]):
            return cast(value, numeric(len(found[1]), len(found[2])))
    if pa.types.is_decimal(have) or pa.types.is_integer(have):
        return cast(value, as_numeric(have))
    return cast(value, NUMERIC)
