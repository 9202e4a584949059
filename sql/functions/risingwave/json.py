"""JSON documents: their members, tests, and documents made of values."""

from __future__ import annotations

import json as documents
from collections.abc import Mapping, Sequence
from decimal import Decimal

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError
from dovetail.sql.functions.documents import JSON, in_one_form, no_document
from dovetail.sql.functions.registry import Build, Row, Table, Unfit
from dovetail.sql.functions.risingwave.signatures import argument
from dovetail.sql.functions.risingwave.values import map_entries
from dovetail.sql.functions.risingwave.values.casts import cast
from dovetail.sql.functions.risingwave.values.kinds import (
    BOOL,
    INSTANT,
    INT,
    LOCAL,
    TEXT,
    engine_name,
    is_unknown,
    kind_of,
    name_of,
    quoted,
    typed,
)
from dovetail.sql.functions.risingwave.values.populated import populated
from dovetail.sql.functions.risingwave.values.texts import document_text, text_of
from dovetail.sql.functions.typed import Typed, filled


def _pointer(key: exp.Expr) -> exp.Expr:
    return filled("'/' || replace(replace({0}, '~', '~0'), '/', '~1')", [key])


def _expect_document(value: Typed, key: Typed) -> None:
    """Raises SqlError for a row, which has fields and no members."""
    if pa.types.is_struct(kind := kind_of(value)):
        fields = [field.name for field in kind]
        row = value.tree.name if isinstance(value.tree, exp.Column) else "row"
        raise SqlError(
            f"-> and ->> take members of jsonb, and this is a row with the fields {', '.join(fields)}",
            fix=f"({row}).{key.literal if key.literal in fields else fields[0]}",
        )


def _step(document: Typed, key: Typed) -> exp.Expr:
    """The member of an object, or the element of an array, from 0, below 0 from its end."""
    _expect_document(document, key)
    whole = cast(document, JSON).tree
    if key.is_integer:
        return filled("json_extract({0}, CAST({1} AS BIGINT))", [whole, key.tree])
    name = argument(key, "text")
    if isinstance(key.literal, str):
        signs = key.literal
        # A pointer would take /0 for an element of an array.
        path = f'$."{signs}"' if signs.lstrip("-").isdigit() else "/" + signs.replace("~", "~0").replace("/", "~1")
        return filled("json_extract({0}, {1})", [whole, quoted(path)])
    template = "CASE WHEN json_type({0}) = 'OBJECT' THEN json_extract({0}, {1}) END"
    return filled(template, [whole, _pointer(name.tree)])


def _document(value: Typed, tree: exp.Expr) -> Typed:
    return value.of(filled("CAST({0} AS VARCHAR)", [tree]), JSON)


def member(document: Typed, key: Typed) -> Typed:
    """``document -> key``"""
    return _document(document, _step(document, key))


def member_text(document: Typed, key: Typed) -> Typed:
    """``document ->> key``"""
    return document.of(document_text(_step(document, key)), TEXT)


def _followed(document: Typed, path: Typed) -> exp.Expr:
    """``{a,0}`` or an array of texts: a number is the place of an element, or the name of a member."""
    names = cast(path, pa.list_(TEXT)).tree
    step = (
        "CASE WHEN json_type(d_) = 'ARRAY' THEN json_extract(d_, TRY_CAST(k_ AS BIGINT)) "
        "ELSE json_extract(d_, '/' || replace(replace(k_, '~', '~0'), '/', '~1')) END"
    )
    return filled(
        f"list_reduce({{0}}, lambda d_, k_: CAST({step} AS VARCHAR), CAST({{1}} AS VARCHAR))",
        [names, cast(document, JSON).tree],
    )


def at_path(document: Typed, path: Typed) -> Typed:
    """``document #> path``"""
    return _document(document, _followed(document, path))


def text_at_path(document: Typed, path: Typed) -> Typed:
    """``document #>> path``"""
    return document.of(document_text(_followed(document, path)), TEXT)


def has_key(document: Typed, key: Typed) -> Typed:
    """``document ? key``: a member of an object by that name, or a string of an array."""
    template = (
        "CASE WHEN {0} IS NOT NULL AND {2} IS NOT NULL THEN coalesce(CASE json_type({0}) WHEN "
        "'OBJECT' THEN json_exists({0}, {1}) "
        "WHEN 'ARRAY' THEN list_contains(CAST(json_extract({0}, '$[*]') AS JSON[]), to_json({2})) "
        "ELSE {0} = to_json({2}) END, false) END"
    )
    name = argument(key, "text").tree
    return typed(document, template, [cast(document, JSON).tree, _pointer(name), name], BOOL)


def contains(document: Typed, part: Typed) -> Typed:
    """``document @> part``: an object has its members, an array its elements; a value alone may be an element.

    The engine's own would look for the part at any depth.
    """
    if not isinstance(part.literal, str):
        raise SqlError(
            "@> takes a JSON document that is written out", fix="document @> '{\"a\": 1}', document -> 'a' = x"
        )
    whole = cast(document, JSON).tree
    wanted = _parsed(part.literal)
    held = _held(whole, wanted, 0)
    if not isinstance(wanted, dict | list):
        inside = _held(whole, [wanted], 0)
        held = filled("{0} OR {1}", [held, inside])
    return typed(document, "CASE WHEN {0} IS NOT NULL THEN coalesce({1}, false) END", [whole, held], BOOL)


def _parsed(text: str) -> object:
    try:
        return documents.loads(text, parse_float=Decimal)
    except ValueError:
        raise no_document(text) from None


_NUMBERS = "('UBIGINT', 'BIGINT', 'DOUBLE', 'HUGEINT', 'UHUGEINT', 'DECIMAL')"


def _held(whole: exp.Expr, wanted: object, depth: int) -> exp.Expr:
    """Whether ``whole`` has all of ``wanted``."""
    if isinstance(wanted, dict):
        terms = [
            _held(filled("json_extract({0}, {1})", [whole, _pointer(quoted(name))]), value, depth)
            for name, value in wanted.items()
        ]
        return _all([filled("json_type({0}) = 'OBJECT'", [whole]), *terms])
    if isinstance(wanted, list):
        name = f"e{depth}_"
        template = (
            f"list_contains(list_transform(CAST(json_extract({{0}}, '$[*]') AS JSON[]), lambda {name}: {{1}}), true)"
        )
        terms = [filled(template, [whole, _held(exp.column(name), value, depth + 1)]) for value in wanted]
        return _all([filled("json_type({0}) = 'ARRAY'", [whole]), *terms])
    if isinstance(wanted, bool) or wanted is None or isinstance(wanted, str):
        return filled("CAST({0} AS VARCHAR) = {1}", [whole, quoted(documents.dumps(wanted, ensure_ascii=False))])
    return filled(
        f"CASE WHEN json_type({{0}}) IN {_NUMBERS} THEN CAST({{0}} AS DOUBLE) = {{1}} END",
        [whole, exp.Literal.number(str(wanted))],
    )


def _all(terms: Sequence[exp.Expr]) -> exp.Expr:
    return filled(" AND ".join(f"{{{index}}}" for index in range(len(terms))), terms)


_IS: Mapping[str, str] = {
    "VALUE": "true", "OBJECT": "{1} = 'OBJECT'", "ARRAY": "{1} = 'ARRAY'", "SCALAR": "{1} NOT IN ('OBJECT', 'ARRAY')",
}  # fmt: skip


def is_document(value: Typed, what: str) -> Typed:
    """``value IS JSON``, ``IS JSON OBJECT``: whether a text is such a document."""
    if not (is_unknown(value) or kind_of(value) in (TEXT, JSON)):
        raise SqlError(f"IS JSON takes a text, not {name_of(kind_of(value))}", fix="write x::varchar IS JSON")
    text = value.tree if kind_of(value) == JSON else cast(value, TEXT).tree
    kind = filled("json_type(CASE WHEN json_valid({0}) THEN {0} END)", [text])
    template = f"CASE WHEN {{0}} IS NOT NULL THEN json_valid({{0}}) AND coalesce({_IS[what]}, false) END"
    return typed(value, template, [text, kind], BOOL)


def _populated(given: Sequence[Typed]) -> Typed:
    """The members over the fields of the row; a field that the object has no member for stays."""
    base, document = _row(given[0]), argument(given[1], "json")
    kind = kind_of(base)
    made = populated(document, kind)
    if base.tree.find(exp.Column, exp.Struct) is None:
        return made
    fields = [
        exp.PropertyEQ(
            this=exp.to_identifier(field.name, quoted=True),
            expression=filled(
                "CASE WHEN json_exists({0}, {1}) THEN struct_extract({2}, {3}) ELSE struct_extract({4}, {3}) END",
                [document.tree, _pointer(quoted(field.name)), made.tree, quoted(field.name), base.tree],
            ),
        )
        for field in kind
    ]
    template = f"CASE WHEN {{0}} IS NULL THEN {{1}} ELSE CAST({{2}} AS {engine_name(kind)}) END"
    return typed(base, template, [document.tree, base.tree, exp.Struct(expressions=fields)], kind)


def _row(base: Typed) -> Typed:
    if not pa.types.is_struct(kind_of(base)):
        raise Unfit(f"takes a row whose fields have types, not {name_of(kind_of(base))}")
    return base


def _records(given: Sequence[Typed]) -> Typed:
    """A row for each object of an array."""
    base, documents_given = _row(given[0]), argument(given[1], "json")
    kind = kind_of(base)
    element = _populated([base, documents_given.of(exp.column("o_"), JSON)]).tree
    template = (
        "CASE WHEN json_type({0}) = 'ARRAY' THEN "
        "list_transform(CAST(json_extract({0}, '$[*]') AS VARCHAR[]), lambda o_: {1}) END"
    )
    return typed(base, template, [documents_given.tree, element], pa.list_(kind))


def _extract_path(text: bool) -> Build:
    def build(given: Sequence[Typed]) -> Typed:
        document, *keys = given
        names = exp.Array(expressions=[argument(key, "text").tree for key in keys])
        path = document.of(names, pa.list_(TEXT))
        return text_at_path(document, path) if text else at_path(document, path)

    return build


def to_json(value: Typed) -> exp.Expr:
    """A value as JSON text: a NULL is null, a time a string in ISO form."""
    kind = kind_of(value)
    if kind == JSON:
        return filled("coalesce({0}, 'null')", [value.tree])
    if value.is_null:
        return quoted("null")
    if pa.types.is_list(kind):
        inner = to_json(value.of(exp.column("e_"), kind.value_type))
        return filled(
            "coalesce('[' || array_to_string(list_transform({0}, lambda e_: {1}), ',') || ']', 'null')",
            [value.tree, inner],
        )
    if pa.types.is_map(kind):
        members = map_entries.by_entry(
            value,
            lambda key, item: filled("CAST(to_json({0}) AS VARCHAR) || ':' || {1}", [text_of(key).tree, to_json(item)]),
        )
        return filled("coalesce('{' || array_to_string({0}, ',') || '}', 'null')", [members])
    if pa.types.is_struct(kind):
        names = [kind.field(index).name for index in range(kind.num_fields)]
        fields = [
            value.of(filled("struct_extract({0}, {1})", [value.tree, quoted(name)]), kind.field(name).type)
            for name in names
        ]
        made = _object([(quoted(name), field) for name, field in zip(names, fields, strict=True)])
        return filled("CASE WHEN {0} IS NULL THEN 'null' ELSE {1} END", [value.tree, made])
    written = text_of(value).tree
    if kind in (LOCAL, INSTANT):
        written = filled("regexp_replace({0}, ' ', 'T')", [written])
        if kind == INSTANT:
            written = filled("regexp_replace({0}, '([+-][0-9][0-9])( BC)?$', '\\1:00\\2')", [written])
    if pa.types.is_floating(kind):
        return filled(
            "CASE WHEN isfinite({0}) THEN {1} WHEN {0} IS NULL THEN 'null' ELSE '\"' || {1} || '\"' END",
            [value.tree, written],
        )
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind) or kind == BOOL:
        return filled("coalesce({0}, 'null')", [written])
    return filled("coalesce(CAST(to_json({0}) AS VARCHAR), 'null')", [written])


def _object(pairs: Sequence[tuple[exp.Expr, Typed]]) -> exp.Expr:
    parts: list[exp.Expr] = [quoted("{")]
    for index, (name, value) in enumerate(pairs):
        parts += [quoted(", ")] if index else []
        parts += [filled("CAST(to_json({0}) AS VARCHAR) || ':'", [name]), to_json(value)]
    return _joined([*parts, quoted("}")])


def _joined(parts: Sequence[exp.Expr]) -> exp.Expr:
    return filled(" || ".join(f"{{{index}}}" for index in range(len(parts))), parts)


def _build_object(given: Sequence[Typed]) -> Typed:
    if len(given) % 2:
        raise Unfit("takes pairs of a name and a value")
    pairs = list(zip(given[::2], given[1::2], strict=True))
    # A name that is NULL makes no document.
    tree = _object([(text_of(name).tree, value) for name, value in pairs])
    return given[0].of(filled("CAST(json({0}) AS VARCHAR)", [tree]), JSON)


def _build_array(given: Sequence[Typed]) -> Typed:
    parts: list[exp.Expr] = [quoted("[")]
    for index, value in enumerate(given):
        parts += [quoted(",")] if index else []
        parts.append(to_json(value))
    return given[0].of(filled("CAST(json({0}) AS VARCHAR)", [_joined([*parts, quoted("]")])]), JSON)


def _to_jsonb(given: Sequence[Typed]) -> Typed:
    (value,) = given
    tree = to_json(value)
    return typed(value, "CASE WHEN {0} IS NOT NULL THEN {1} END", [value.tree, tree], JSON)


def _pretty(given: Sequence[Typed]) -> Typed:
    (document,) = given
    return typed(document, "json_pretty({0})", [in_one_form(cast(document, JSON)).tree], TEXT)


_TYPES = (
    "CASE json_type({0}) WHEN 'OBJECT' THEN 'object' WHEN 'ARRAY' THEN 'array' WHEN 'VARCHAR' THEN 'string' "
    "WHEN 'BOOLEAN' THEN 'boolean' WHEN 'NULL' THEN 'null' WHEN NULL THEN NULL ELSE CASE WHEN {0} IS "
    "NOT NULL THEN 'number' END END"
)


FUNCTIONS: Table = (
    Row("jsonb_typeof(document)", "object, array, string, number, boolean or null", _TYPES, TEXT, takes="json",
        also="json_typeof"),
    Row("jsonb_array_length(array)", "how many elements it has",
        "CASE json_type({0}) WHEN 'ARRAY' THEN json_array_length({0}) END", INT, takes="json",
        also="json_array_length"),
    Row("jsonb_extract_path(document, name, ..)", "the member at the path", _extract_path(False),
        also="json_extract_path"),
    Row("jsonb_extract_path_text(document, name, ..)", "the member at the path, as a text", _extract_path(True),
        also="json_extract_path_text"),
    Row("jsonb_build_object(name, value, ..)", "an object of these members", _build_object),
    Row("jsonb_build_array(value, ..)", "an array of these elements", _build_array),
    Row("to_jsonb(value)", "the value as a document", _to_jsonb),
    Row("jsonb_pretty(document)", "over several lines, indented", _pretty),
    Row("jsonb_contains(document, part)", "document @> part", lambda given: contains(given[0], given[1])),
    Row("jsonb_contained(part, document)", "part <@ document", lambda given: contains(given[1], given[0])),
    Row("jsonb_populate_record(row, object)", "the row with the members of the object: NULL::struct<a int, b varchar>",
        _populated),
    Row("jsonb_records_to_array(row, array)", "the rows of jsonb_populate_recordset and jsonb_to_recordset", _records),
    Row("jsonb_exists(document, name)", "document ? name", lambda given: has_key(given[0], given[1])),
)  # fmt: skip
