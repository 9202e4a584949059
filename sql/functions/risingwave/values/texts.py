"""Values as texts, written as PostgreSQL writes them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError
from dovetail.sql.functions.documents import JSON, in_one_form
from dovetail.sql.functions.interval_columns import interval_text
from dovetail.sql.functions.risingwave.values import map_entries
from dovetail.sql.functions.risingwave.values.kinds import (
    BOOL,
    BYTES,
    DATE,
    INSTANT,
    INTERVAL,
    LOCAL,
    NUMERIC,
    REAL,
    TEXT,
    kind_of,
    name_of,
    quoted,
)
from dovetail.sql.functions.typed import Typed, filled

_TOKEN_BEFORE_SPACE = r'((?:"(?:[^"\\]|\\.)*"|[^",:])*(?:[,:]|$))'
"""As far as a comma or a colon that stands in no string, or the end: a match never begins within a string."""
_NEEDS_QUOTES = r'^$|[{},"\\\s]|^(?i:null)$'
"""Elements that stand in quotes in the text of an array."""


def text_of(value: Typed) -> Typed:
    """``value::varchar``"""
    kind = kind_of(value)
    if value.is_null:
        return value.of(filled("CAST(NULL AS VARCHAR)", []), TEXT)
    if kind == TEXT:
        return value.of(value.tree, TEXT)
    return value.of(_written(value, kind), TEXT)


def output_of(value: Typed) -> Typed:
    """As a result is shown, and as concat() and format() show it: a truth value is t or f."""
    if kind_of(value) == BOOL:
        return value.of(filled("CASE {0} WHEN true THEN 't' WHEN false THEN 'f' END", [value.tree]), TEXT)
    return text_of(value)


def _written(value: Typed, kind: pa.DataType) -> exp.Expr:
    if pa.types.is_floating(kind):
        return _real_text(value.tree) if kind == REAL else _double_text(value.tree)
    if kind in (DATE, LOCAL, INSTANT):
        return _replaced(filled("CAST({0} AS VARCHAR)", [value.tree]), [(r"^(.*?) \(BC\)(.*)$", r"\1\2 BC")])
    if kind == INTERVAL:
        return interval_text(value.tree)
    if kind == JSON:
        return json_text(in_one_form(value).tree)
    if kind == BYTES:
        return filled("'\\x' || lower(hex({0}))", [value.tree])
    if pa.types.is_list(kind):
        return _list_text(value, kind)
    if pa.types.is_decimal(kind):
        return _numeric_text(value.tree, kind)
    if pa.types.is_map(kind):
        return _map_text(value)
    if pa.types.is_struct(kind):
        raise SqlError(f"a {name_of(kind)} has no text", fix="name one of its fields")
    return filled("CAST({0} AS VARCHAR)", [value.tree])


def document_text(document: exp.Expr) -> exp.Expr:
    """A string without its quotes, NULL for null; what has members as it stands."""
    template = "CASE WHEN json_type({0}) IN ('OBJECT', 'ARRAY') THEN {1} ELSE json_extract_string({0}, '$') END"
    return filled(template, [document, json_text(filled("CAST({0} AS VARCHAR)", [document]))])


def json_text(document: exp.Expr) -> exp.Expr:
    spaced = "rtrim(regexp_replace({0}, {1}, {2}, 'g'))"
    return filled(spaced, [document, quoted(_TOKEN_BEFORE_SPACE), quoted(r"\1 ")])


def _replaced(text: exp.Expr, pairs: Sequence[tuple[str, str]]) -> exp.Expr:
    for pattern, by in pairs:
        text = filled("regexp_replace({0}, {1}, {2})", [text, quoted(pattern), quoted(by)])
    return text


_TRIMMED = ((r"(\.[0-9]*?)0*e", r"\1e"), (r"\.e", "e"), (r"\.0$", ""), ("^nan$", "NaN"), ("inf$", "Infinity"))


def _double_text(tree: exp.Expr) -> exp.Expr:
    """Without a point where it is whole, and with an exponent from 1e15 on."""
    text = filled("CAST({0} AS VARCHAR)", [tree])
    return _replaced(text, [(r"^(-?[0-9])([0-9]{15})\.0$", r"\1.\2e+15"), *_TRIMMED])


def _real_text(tree: exp.Expr) -> exp.Expr:
    """With an exponent from 1e6 on: the shortest that is the same number again."""
    template = (
        "CASE WHEN abs({0}) < 1000000 OR NOT isfinite({0}) THEN {1} ELSE "
        "list_extract(list_filter(list_transform(range(0, 9), "
        "lambda p_: printf(concat('%.', p_, 'e'), CAST({0} AS DOUBLE))), lambda s_: CAST(s_ AS REAL) = {0}), 1) END"
    )
    return filled(template, [tree, _replaced(filled("CAST({0} AS VARCHAR)", [tree]), _TRIMMED[2:])])


_NO_DIGIT_BEFORE = (r"^(-?)\.", r"\10.")
_NOUGHTS_AT_THE_END = (r"\.?0+$", "")


def _numeric_text(tree: exp.Expr, kind: pa.DataType) -> exp.Expr:
    """With the digits that its type has behind the point; a numeric declared without any has those that it needs."""
    pairs = [_NO_DIGIT_BEFORE] if kind.precision == kind.scale else []
    pairs += [_NOUGHTS_AT_THE_END] if kind.scale == NUMERIC.scale else []
    return _replaced(filled("CAST({0} AS VARCHAR)", [tree]), pairs)


def _list_text(value: Typed, kind: pa.DataType) -> exp.Expr:
    element = output_of(value.of(exp.column("e_"), kind.value_type)).tree
    if not _plain(kind.value_type):
        escaped = filled(
            "replace(replace({0}, {1}, {2}), '\"', {3})", [element, quoted("\\"), quoted("\\\\"), quoted('\\"')]
        )
        element = filled(
            "CASE WHEN regexp_matches({0}, {1}) THEN '\"' || {2} || '\"' ELSE {0} END",
            [element, quoted(_NEEDS_QUOTES), escaped],
        )
    return filled(
        "'{' || array_to_string(list_transform({0}, lambda e_: coalesce({1}, 'NULL')), ',') || '}'",
        [value.tree, element],
    )


def _map_text(value: Typed) -> exp.Expr:
    """``{a:1,b:NULL}``"""
    entries = map_entries.by_entry(
        map_entries.in_order(value),
        lambda key, item: filled("{0} || ':' || coalesce({1}, 'NULL')", [text_of(key).tree, output_of(item).tree]),
    )
    return filled("'{' || array_to_string({0}, ',') || '}'", [entries])


def _plain(kind: pa.DataType) -> bool:
    """Whether no value of the type needs quotes in the text of an array."""
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or kind in (BOOL, DATE)
    )
