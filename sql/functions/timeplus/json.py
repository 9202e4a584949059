"""JSON in texts: members by their names and positions, with the type's default where there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.expressions.engine import type_name
from dovetail.sql.functions.registry import Build, Row, Table, Unfit
from dovetail.sql.functions.timeplus.arrays import default_of
from dovetail.sql.functions.timeplus.conversions import to_string
from dovetail.sql.functions.typed import Typed, filled
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.types import arrow

_WHOLE = exp.Literal.string("^-?[0-9]+$")
_AS_WRITTEN = "numbers stay as they are written, 1.0 for one"


def path_of(parts: Sequence[Typed]) -> exp.Expr:
    """The path of the engine: ``'a', 2`` is ``$."a"[1]``; positions count from 1, below 0 from the end."""
    tree: exp.Expr = exp.Literal.string("$")
    if all(part.literal is not None for part in parts):
        return exp.Literal.string("$" + "".join(_step(part) for part in parts))
    for part in parts:
        if part.literal is not None:
            tree = filled("{0} || {1}", [tree, exp.Literal.string(_step(part))])
        elif part.is_text:
            tree = filled("{0} || '.\"' || replace({1}, '\"', '\\\"') || '\"'", [tree, part.tree])
        elif part.is_integer:
            place = "CASE WHEN {1} < 0 THEN '#' || CAST({1} AS VARCHAR) ELSE CAST({1} - 1 AS VARCHAR) END"
            tree = filled(f"{{0}} || '[' || {place} || ']'", [tree, part.tree])
        else:
            raise Unfit(f"takes names and positions, not a {part.family}")
    return tree


def _step(part: Typed) -> str:
    if isinstance(part.literal, str):
        escaped = part.literal.replace('"', '\\"')
        return f'."{escaped}"'
    if isinstance(part.literal, int):
        return f"[#{part.literal}]" if part.literal < 0 else f"[{part.literal - 1}]"
    raise Unfit("takes names and positions")


def member(arguments: Sequence[Typed]) -> exp.Expr:
    """The member of a valid JSON text, as JSON; NULL where there is none, or the text is none."""
    document = filled("CASE WHEN json_valid({0}) THEN CAST({0} AS JSON) END", [arguments[0].tree])
    if len(arguments) == 1:
        return document
    return filled("json_extract({0}, {1})", [document, path_of(arguments[1:])])


def _present(arguments: Sequence[Typed], value: exp.Expr, default: str) -> exp.Expr:
    """NULL for a text that is NULL, the default where there is no value."""
    template = f"CASE WHEN {{0}} IS NOT NULL THEN coalesce({{1}}, {default}) END"
    return filled(template, [arguments[0].tree, value])


def _value(found: exp.Expr, kind: pa.DataType) -> exp.Expr:
    """A member as a value of the type; NULL if it cannot be read."""
    text = filled("({0} ->> '$')", [found])
    if pa.types.is_integer(kind):
        whole = filled(
            f"TRY_CAST(CASE WHEN regexp_matches({{0}}, {{1}}) THEN {{0}} END AS {type_name(kind)})", [text, _WHOLE]
        )
        cut = filled(f"TRY_CAST(trunc(TRY_CAST({{0}} AS DOUBLE)) AS {type_name(kind)})", [text])
        return filled("CASE WHEN json_type({0}) <> 'BOOLEAN' THEN coalesce({1}, {2}) END", [found, whole, cut])
    if pa.types.is_boolean(kind):
        number = "WHEN json_type({0}) IN ('BIGINT', 'UBIGINT') THEN {1} <> '0'"
        return filled(f"CASE WHEN json_type({{0}}) = 'BOOLEAN' THEN {{1}} = 'true' {number} END", [found, text])
    if pa.types.is_string(kind):
        return filled("CASE WHEN json_type({0}) <> 'NULL' THEN {1} END", [found, text])
    if pa.types.is_list(kind):
        each = _value(exp.column("each_"), kind.value_type)
        items = filled("list_transform(CAST({0} AS JSON[]), lambda each_: {1})", [found, each])
        return filled("CASE WHEN json_type({0}) = 'ARRAY' THEN {1} END", [found, items])
    return filled(f"TRY_CAST({{0}} AS {type_name(kind)})", [text])


def _typed(kind: pa.DataType) -> Build:
    default = default_of(kind) or "NULL"
    return lambda arguments: _present(arguments, _value(member(arguments), kind), default)


def _extract(arguments: Sequence[Typed]) -> Typed:
    """``json_extract(json, 'a', 'b', 'int32')``: the last argument is the type."""
    wanted = arguments[-1].literal
    if not isinstance(wanted, str):
        raise Unfit("takes the type as a text that is written out")
    kind = arrow(wanted.lower(), Rules.TIMEPLUS)
    value = _value(member(arguments[:-1]), kind)
    nullable = wanted.lower().startswith("nullable")
    made = value if nullable else _present(arguments, value, default_of(kind) or "NULL")
    return arguments[0].of(filled(f"CAST({{0}} AS {type_name(kind)})", [made]), kind)


def _raw(arguments: Sequence[Typed]) -> exp.Expr:
    return _present(arguments, filled("CAST({0} AS VARCHAR)", [member(arguments)]), "''")


_TYPES: Mapping[str, str] = {
    "VARCHAR": "String",
    "BOOLEAN": "Bool",
    "OBJECT": "Object",
    "ARRAY": "Array",
    "UBIGINT": "Int64",
    "BIGINT": "Int64",
    "DOUBLE": "Double",
}


def _type(arguments: Sequence[Typed]) -> exp.Expr:
    named = " ".join(f"WHEN '{one}' THEN '{theirs}'" for one, theirs in _TYPES.items())
    found = member(arguments)
    # Beyond 63 bits it is a number without sign.
    large = "WHEN json_type({0}) = 'UBIGINT' AND length({0} ->> '$') >= 19 AND ({0} ->> '$') > '9223372036854775807'"
    type_name = f"CASE {large} THEN 'UInt64' ELSE CASE json_type({{0}}) {named} END END"
    return _present(arguments, filled(type_name, [found]), "'Null'")


def _has(arguments: Sequence[Typed]) -> exp.Expr:
    return _present(arguments, filled("({0} IS NOT NULL)", [member(arguments)]), "false")


def _length(arguments: Sequence[Typed]) -> exp.Expr:
    counted = "CASE json_type({0}) WHEN 'ARRAY' THEN json_array_length({0}) WHEN 'OBJECT' THEN len(json_keys({0})) END"
    return _present(arguments, filled(counted, [member(arguments)]), "0")


def _array_length(arguments: Sequence[Typed]) -> exp.Expr:
    """NULL for what is no array."""
    return filled("CASE WHEN json_type({0}) = 'ARRAY' THEN json_array_length({0}) END", [member(arguments)])


def _keys(arguments: Sequence[Typed]) -> exp.Expr:
    keys = filled("CASE WHEN json_type({0}) = 'OBJECT' THEN json_keys({0}) END", [member(arguments)])
    return _present(arguments, keys, "CAST([] AS VARCHAR[])")


def _array(arguments: Sequence[Typed]) -> exp.Expr:
    items = "list_transform(CAST({0} AS JSON[]), lambda each_: coalesce(CAST(each_ AS VARCHAR), 'null'))"
    found = filled(f"CASE WHEN json_type({{0}}) = 'ARRAY' THEN {items} END", [member(arguments)])
    return _present(arguments, found, "CAST([] AS VARCHAR[])")


def _entries(arguments: Sequence[Typed]) -> exp.Expr:
    """Pairs of a name and the JSON of its member."""
    trees = [_keys(arguments), member(arguments)]
    step = "'$.\"' || replace(each_, '\"', '\\\"') || '\"'"
    row = f"{{'1': each_, '2': CAST(json_extract({{1}}, {step}) AS VARCHAR)}}"
    return filled(f"list_transform({{0}}, lambda each_: {row})", trees)


def _at_path(arguments: Sequence[Typed]) -> exp.Expr:
    return filled(
        "CASE WHEN json_valid({0}) THEN json_extract(CAST({0} AS JSON), {1}) END", [one.tree for one in arguments]
    )


def _value_at_path(arguments: Sequence[Typed]) -> exp.Expr:
    plain = "CASE WHEN json_type({0}) NOT IN ('OBJECT', 'ARRAY') THEN {0} ->> '$' END"
    return _present(arguments, filled(plain, [_at_path(arguments)]), "''")


def _query_at_path(arguments: Sequence[Typed]) -> exp.Expr:
    return _present(arguments, filled("'[' || CAST({0} AS VARCHAR) || ']'", [_at_path(arguments)]), "''")


def _exists(arguments: Sequence[Typed]) -> exp.Expr:
    return _present(arguments, filled("({0} IS NOT NULL)", [_at_path(arguments)]), "false")


def _written(arguments: Sequence[Typed]) -> exp.Expr:
    (value,) = arguments
    if value.is_float:
        return to_string([value]).tree
    return filled("CAST(to_json({0}) AS VARCHAR)", [value.tree])


def _at_names(
    name: str, meaning: str, build: Build, gives: pa.DataType | None, also: str = "", differs: str = ""
) -> Row:
    """A function of a document and names, or positions, as many as its path has steps."""
    return Row(f"{name}(json, name, ..)", meaning, build, gives, also=also, differs=differs, arity=(1, None))


def _typed_at(name: str, meaning: str, kind: pa.DataType, differs: str = "") -> tuple[Row, Row]:
    build, by_grammar = _typed(kind), "reads JSON by its grammar, where ClickHouse searches for the name"
    return (
        _at_names(f"json_extract_{name}", meaning, build, kind, differs=differs),
        Row(f"simple_json_extract_{name}(json, name)", meaning, build, kind, also=f"visit_param_extract_{name}",
            differs=by_grammar),
    )  # fmt: skip


_TEXT = pa.string()
_RAW = "the JSON at a path; '' where there is none"
_HAS = "whether there is something at a path"

FUNCTIONS: Table = (
    *_typed_at("int", "the whole number at a path; 0 where there is none", pa.int64()),
    *_typed_at("uint", "the number without sign at a path; 0 where there is none", pa.uint64()),
    *_typed_at("float", "the number at a path; 0 where there is none", pa.float64()),
    *_typed_at("bool", "the truth value at a path; false where there is none", pa.bool_()),
    *_typed_at("string", "the text at a path; '' where there is none", _TEXT, _AS_WRITTEN),
    _at_names("json_extract_raw", _RAW, _raw, _TEXT, differs=_AS_WRITTEN),
    Row("simple_json_extract_raw(json, name)", _RAW, _raw, _TEXT, also="visit_param_extract_raw"),
    _at_names("json_has", _HAS, _has, pa.bool_()),
    Row("simple_json_has(json, name)", _HAS, _has, pa.bool_(), also="visit_param_has"),
    Row("json_extract(json, name, .., type)", "the value at a path, of the type named last", _extract,
        arity=(2, None)),
    _at_names("json_extract_keys", "the names of the members at a path", _keys, None),
    _at_names("json_extract_array_raw", "the elements of the array at a path, as JSON", _array, None,
              "json_extract_array", _AS_WRITTEN),
    _at_names("json_extract_keys_and_values_raw", "pairs of a name and the JSON of its member, at a path", _entries,
              None, differs=_AS_WRITTEN),
    _at_names("json_length", "how many elements or members there are at a path", _length, pa.uint64()),
    Row("json_array_length(json)", "how many elements the array has", _array_length, pa.uint64(), takes="text"),
    _at_names("json_type", "String, Int64, Double, Bool, Array, Object or Null", _type, _TEXT),
    Row("is_valid_json(text)", "whether a text is JSON", "json_valid({0})"),
    Row("json_value(json, path)", "the text or number at a path such as $.a.b[0]; '' where there is none",
        _value_at_path, _TEXT),
    Row("json_query(json, path)", "the JSON at a path, in an array; '' where there is none", _query_at_path, _TEXT,
        differs=_AS_WRITTEN),
    Row("json_exists(json, path)", _HAS, _exists, pa.bool_()),
    Row("to_json_string(x)", "as JSON", _written, _TEXT),
)  # fmt: skip
