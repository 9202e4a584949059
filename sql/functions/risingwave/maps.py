"""Maps: values by key. Their keys are texts or integers, each of them once."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError
from dovetail.sql.expressions.expression import columns_read
from dovetail.sql.expressions.written_values import has_value
from dovetail.sql.functions.registry import Build, Row, Table, Unfit
from dovetail.sql.functions.risingwave.signatures import argument
from dovetail.sql.functions.risingwave.values.casts import cast, kind_in_common
from dovetail.sql.functions.risingwave.values.kinds import (
    BIG,
    BOOL,
    TEXT,
    engine_name,
    is_unknown,
    kind_of,
    name_of,
    quoted,
    typed,
)
from dovetail.sql.functions.risingwave.values.map_entries import from_entries, in_order, map_kind, row_of
from dovetail.sql.functions.risingwave.values.populated import populated
from dovetail.sql.functions.typed import Typed, filled

_EMPTY = "the type of an empty map is not known"


def _map(value: Typed) -> Typed:
    if not pa.types.is_map(kind_of(value)):
        raise Unfit(f"takes a map, not {name_of(kind_of(value))}")
    return value


def _array(value: Typed) -> Typed:
    if not pa.types.is_list(kind_of(value)):
        raise Unfit(f"takes an array, not {name_of(kind_of(value))}")
    return value


def _from_key_values(given: Sequence[Typed]) -> Typed:
    keys, items = (_array(value) for value in given)
    kind = map_kind(kind_of(keys).value_type, kind_of(items).value_type)
    pairs = filled("map_entries(map({0}, {1}))", [keys.tree, items.tree])
    return _expect_map(keys.of(from_entries(pairs, kind), kind), [keys, items])


def _from_entries(given: Sequence[Typed]) -> Typed:
    """Of rows of two fields, whatever these are called."""
    (array,) = given
    inner = kind_of(_array(array)).value_type
    if not pa.types.is_struct(inner) or inner.num_fields != 2:
        raise Unfit(f"takes an array of rows of a key and a value, not {name_of(kind_of(array))}")
    parts = [filled("struct_extract({0}, {1})", [exp.column("r_"), quoted(field.name)]) for field in inner]
    kind = map_kind(inner[0].type, inner[1].type)
    entries = filled("list_transform({0}, lambda r_: {1})", [array.tree, row_of(*parts)])
    return _expect_map(array.of(from_entries(entries, kind), kind), [array])


def _expect_map(made: Typed, given: Sequence[Typed]) -> Typed:
    """Raises Unfit where what is written out makes no map."""
    if not columns_read(made.tree) and all(has_value(one.tree) for one in given) and not has_value(made.tree):
        raise Unfit("takes keys that are not NULL, each of them once, and a value for each")
    return made


def written(keys: Sequence[Typed], items: Sequence[Typed]) -> Typed:
    """``MAP {key: value, ..}``"""
    if not keys:
        raise SqlError(_EMPTY, fix="MAP {}::map(varchar, int)")
    key, item = kind_in_common("the keys of a map", keys), kind_in_common("the values of a map", items)
    parts = []
    for values, kind in ((keys, key), (items, item)):
        array = exp.Array(expressions=[cast(value, kind).tree.copy() for value in values])
        parts.append(keys[0].of(filled(f"CAST({{0}} AS {engine_name(kind)}[])", [array]), pa.list_(kind)))
    try:
        return _from_key_values(parts)
    except Unfit as unfit:
        raise SqlError(f"MAP {unfit}", fix="MAP {'a': 1, 'b': 2}") from None


def empty(value: Typed, kind: pa.DataType) -> Typed:
    """``MAP {}::map(varchar, int)``"""
    return value.of(from_entries(exp.Array(expressions=[]), kind), kind)


def _key(value: Typed, key: Typed) -> exp.Expr:
    """A key to look for, of the type of those of the map."""
    kind = kind_of(value).key_type
    if not (is_unknown(key) or kind == TEXT or key.is_integer):
        raise Unfit(f"takes a key of the type {name_of(kind)}, not {name_of(kind_of(key))}")
    if pa.types.is_integer(kind) and not is_unknown(key):
        return cast(key, BIG).tree
    return cast(key, kind).tree


def access(given: Sequence[Typed]) -> Typed:
    value = _map(given[0])
    return typed(value, "map_extract_value({0}, {1})", [value.tree, _key(value, given[1])], kind_of(value).item_type)


def _contains(given: Sequence[Typed]) -> Typed:
    value = _map(given[0])
    return typed(value, "map_contains({0}, {1})", [value.tree, _key(value, given[1])], BOOL)


def _keys(given: Sequence[Typed]) -> Typed:
    value = in_order(_map(given[0]))
    return typed(value, "map_keys({0})", [value.tree], pa.list_(kind_of(value).key_type))


def _values(given: Sequence[Typed]) -> Typed:
    value = in_order(_map(given[0]))
    return typed(value, "map_values({0})", [value.tree], pa.list_(kind_of(value).item_type))


def _entries(given: Sequence[Typed]) -> Typed:
    value = in_order(_map(given[0]))
    kind = kind_of(value)
    row = pa.struct([("key", kind.key_type), ("value", kind.item_type)])
    return typed(value, "map_entries({0})", [value.tree], pa.list_(row))


def _cat(given: Sequence[Typed]) -> Typed:
    """Where both have a key, the value is that of the second."""
    kind = kind_in_common("map_cat()", [_map(value) if not value.is_null else value for value in given])
    if not pa.types.is_map(kind):
        raise Unfit("takes two maps")
    one, other = (cast(value, kind).tree for value in given)
    template = "CASE WHEN {0} IS NOT NULL OR {1} IS NOT NULL THEN map_concat({0}, {1}) END"
    return in_order(typed(given[0], template, [one, other], kind))


def _insert(given: Sequence[Typed]) -> Typed:
    value, key, item = given
    kind = kind_of(_map(value))
    entry = from_entries(exp.Array(expressions=[row_of(_key(value, key), cast(item, kind.item_type).tree)]), kind)
    template = "CASE WHEN {1} IS NULL OR {0} IS NULL THEN {0} ELSE map_concat({0}, {2}) END"
    return in_order(typed(value, template, [value.tree, _key(value, key), entry], kind))


def _delete(given: Sequence[Typed]) -> Typed:
    value, key = given
    kind = kind_of(_map(value))
    rest = filled(
        "list_filter(map_entries({0}), lambda e_: struct_extract(e_, 'key') IS DISTINCT FROM {1})",
        [value.tree, _key(value, key)],
    )
    return value.of(from_entries(rest, kind), kind)


def _filter(given: Sequence[Typed]) -> Typed:
    value, body = _map(given[0]), given[1]
    if not isinstance(body.tree, exp.Lambda) or len(body.tree.expressions) != 2:
        raise Unfit("takes a lambda of a key and a value, |k, v| v > 0")
    if kind_of(body) != BOOL:
        raise Unfit(f"takes a lambda that is true or false, not {name_of(kind_of(body))}")
    kind = kind_of(value)
    key, item = (name.name for name in body.tree.expressions)
    entry = exp.to_identifier(f"{key},{item}", quoted=True)
    fields = {key: "key", item: "value"}

    def named(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.name in fields:
            return filled("struct_extract({0}, {1})", [exp.column(entry.copy()), quoted(fields[node.name])])
        return node

    held = exp.Lambda(this=body.tree.this.copy().transform(named), expressions=[entry], colon=True)
    left = from_entries(filled("list_filter(map_entries({0}), {1})", [value.tree, held]), kind)
    return value.of(filled("CASE WHEN cardinality({0}) > 0 THEN {0} END", [left]), kind)


def _populated(given: Sequence[Typed]) -> Typed:
    """The members of an object over the entries of a map."""
    base, document = given[0], argument(given[1], "json")
    kind = kind_of(_map(base))
    if kind.key_type != TEXT:
        raise Unfit(f"takes a map whose keys are texts, not {name_of(kind)}")
    made = populated(document, kind).tree
    return _cat([base, base.of(made, kind)])


def _of_map(template: str, gives: pa.DataType) -> Build:
    return lambda given: typed(_map(given[0]), template, [given[0].tree], gives)


FUNCTIONS: Table = (
    Row("map_from_key_values(keys, values)", "a map of the pairs side by side; MAP {key: value, ..}",
        _from_key_values),
    Row("map_from_entries(rows)", "a map of an array of rows of a key and a value", _from_entries),
    Row("map_access(map, key)", "map[key], NULL where it has no such key", access),
    Row("map_contains(map, key)", "whether it has the key", _contains),
    Row("map_keys(map)", "its keys, in order", _keys),
    Row("map_values(map)", "its values, in the order of the keys", _values),
    Row("map_entries(map)", "its entries in the order of the keys, rows of key and value", _entries),
    Row("map_length(map)", "how many entries", _of_map("CAST(cardinality({0}) AS BIGINT)", BIG)),
    Row("map_cat(a, b)", "the entries of both; where both have a key, that of b", _cat),
    Row("map_insert(map, key, value)", "with one more entry, or another value of the key", _insert),
    Row("map_delete(map, key)", "without the key", _delete),
    Row("map_filter(map, |k, v| condition)", "the entries for which it holds; NULL where there are none", _filter,
        arity=(2, 2)),
    Row("jsonb_populate_map(map, object)", "with the members of a document over its entries", _populated),
)  # fmt: skip
