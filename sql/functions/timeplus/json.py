"""JSON in texts: members by their names and positions, with the type's default where there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from sqlglot import exp

from sql.expressions.engine import type_name
from sql.functions.registry import Registry, Unfit
from sql.functions.typed import Typed, filled


def path_of(parts: Sequence[Typed]) -> exp.Expr:
    """The path of the engine: ``'a', 2`` is ``$."a"[1]``; positions count from 1, below 0 from the end."""
    if all(part.literal is not None for part in parts):
        return exp.Literal.string("$" + "".join(_step(part) for part in parts))
    tree: exp.Expr = exp.Literal.string("$")
    for part in parts:
        if part.literal is not None:
            tree = filled("{0} || {1}", [tree, exp.Literal.string(_step(part))])
        elif part.is_text:
            tree = filled("{0} || '.\"' || replace({1}, '\"', '\\\"') || '\"'", [tree, part.tree])
        elif part.is_integer:
            tree = filled("{0} || '[' || CASE WHEN {1} < 0 THEN '#' || CAST({1} AS VARCHAR) ELSE CAST({1} - 1 AS VARCHAR) END || ']'", [tree, part.tree])
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


def _typed(kind: pa.DataType, default: str) -> Callable[[Sequence[Typed]], exp.Expr]:
    name = type_name(kind)

    def build(arguments: Sequence[Typed]) -> exp.Expr:
        found = member(arguments)
        number = pa.types.is_integer(kind)
        text = filled("{0} ->> '$'", [found])
        value = filled(f"TRY_CAST(trunc(TRY_CAST({{0}} AS DOUBLE)) AS {name})" if False else f"TRY_CAST({{0}} AS {name})", [text])
        if number:
            value = filled(f"CASE WHEN {{0}} IN ('true', 'false') THEN CAST({{0}} = 'true' AS {name}) ELSE coalesce(TRY_CAST(CASE WHEN regexp_matches({{0}}, '^[+-]?[0-9]+$') THEN {{0}} END AS {name}), TRY_CAST(trunc(TRY_CAST({{0}} AS DOUBLE)) AS {name})) END", [text])
        return filled(f"CASE WHEN {{0}} IS NULL THEN NULL ELSE coalesce({{1}}, {default}) END", [arguments[0].tree, value])

    return build


def _string(arguments: Sequence[Typed]) -> exp.Expr:
    """'' for what is no text."""
    found = member(arguments)
    return filled("CASE WHEN {0} IS NULL THEN NULL ELSE coalesce(CASE WHEN json_type({1}) = 'VARCHAR' THEN {1} ->> '$' END, '') END", [arguments[0].tree, found])


def _boolean(arguments: Sequence[Typed]) -> exp.Expr:
    found = member(arguments)
    return filled("CASE WHEN {0} IS NULL THEN NULL ELSE coalesce(CASE WHEN json_type({1}) = 'BOOLEAN' THEN CAST({1} ->> '$' AS BOOLEAN) END, false) END", [arguments[0].tree, found])


def _raw(arguments: Sequence[Typed]) -> exp.Expr:
    return filled("CASE WHEN {0} IS NULL THEN NULL ELSE coalesce(CAST({1} AS VARCHAR), '') END", [arguments[0].tree, member(arguments)])


_TYPES = {"VARCHAR": "String", "BOOLEAN": "Bool", "OBJECT": "Object", "ARRAY": "Array", "UBIGINT": "UInt64", "BIGINT": "Int64", "DOUBLE": "Double", "NULL": "Null"}


def _type(arguments: Sequence[Typed]) -> exp.Expr:
    named = " ".join(f"WHEN '{one}' THEN '{ours if one != 'UBIGINT' else 'Int64'}'" for one, ours in _TYPES.items())
    return filled(f"CASE WHEN {{0}} IS NULL THEN NULL ELSE CASE coalesce(json_type({{1}}), 'NULL') {named} END END", [arguments[0].tree, member(arguments)])


def _has(arguments: Sequence[Typed]) -> exp.Expr:
    return filled("CASE WHEN {0} IS NULL THEN NULL ELSE ({1}) IS NOT NULL END", [arguments[0].tree, member(arguments)])


def _length(arguments: Sequence[Typed]) -> exp.Expr:
    found = member(arguments)
    return filled("CASE WHEN {0} IS NULL THEN NULL ELSE CAST(coalesce(CASE json_type({1}) WHEN 'ARRAY' THEN json_array_length({1}) WHEN 'OBJECT' THEN len(json_keys({1})) END, 0) AS UBIGINT) END", [arguments[0].tree, found])


def _keys(arguments: Sequence[Typed]) -> exp.Expr:
    return filled("CASE WHEN {0} IS NULL THEN NULL ELSE coalesce(CASE WHEN json_type({1}) = 'OBJECT' THEN json_keys({1}) END, CAST([] AS VARCHAR[])) END", [arguments[0].tree, member(arguments)])


def _array(arguments: Sequence[Typed]) -> exp.Expr:
    return filled("CASE WHEN {0} IS NULL THEN NULL ELSE coalesce(CASE WHEN json_type({1}) = 'ARRAY' THEN list_transform(CAST({1} AS JSON[]), lambda j: CAST(j AS VARCHAR)) END, CAST([] AS VARCHAR[])) END", [arguments[0].tree, member(arguments)])


def register(registry: Registry) -> None:
    def add(usage: str, meaning: str, build: object, kind: pa.DataType | None = None, **more: object) -> None:
        registry.add(usage, meaning, build, kind, group="JSON", arity=more.pop("arity", (1, None)), **more)  # type: ignore[arg-type]

    add("json_extract_string(json, name, ..)", "the text at a path; '' where there is none", _string, pa.string())
    add("json_extract_raw(json, name, ..)", "the JSON at a path; '' where there is none", _raw, pa.string())
    add("json_extract_int(json, name, ..)", "the whole number at a path; 0 where there is none", _typed(pa.int64(), "0"), pa.int64())
    add("json_extract_uint(json, name, ..)", "the number without sign at a path; 0 where there is none", _typed(pa.uint64(), "0"), pa.uint64())
    add("json_extract_float(json, name, ..)", "the number at a path; 0 where there is none", _typed(pa.float64(), "0"), pa.float64())
    add("json_extract_bool(json, name, ..)", "the truth value at a path; false where there is none", _boolean, pa.bool_())
    add("json_extract_keys(json, name, ..)", "the names of the members at a path", _keys)
    add("json_extract_array_raw(json, name, ..)", "the elements of the array at a path, as JSON", _array, aliases="json_extract_array")
    add("json_has(json, name, ..)", "whether there is something at a path", _has)
    add("json_length(json, name, ..)", "how many elements or members there are at a path", _length, pa.uint64())
    add("json_type(json, name, ..)", "String, Int64, Double, Bool, Array, Object or Null", _type, pa.string())
    add("is_valid_json(text)", "whether a text is JSON", "json_valid({0})", arity=(1, 1))
    add("json_value(json, path)", "the value at a path such as $.a.b; '' where there is none", "CASE WHEN {0} IS NULL THEN NULL ELSE coalesce(CASE WHEN json_valid({0}) THEN json_extract_string({0}, {1}) END, '') END", pa.string(), arity=(2, 2))
    add("json_query(json, path)", "the array or object at a path, in an array", "CASE WHEN {0} IS NULL THEN NULL ELSE coalesce('[' || CASE WHEN json_valid({0}) THEN CAST(json_extract({0}, {1}) AS VARCHAR) END || ']', '') END", pa.string(), arity=(2, 2))
    add("to_json_string(x)", "as JSON", "CAST(to_json({0}) AS VARCHAR)", pa.string(), arity=(1, 1))
