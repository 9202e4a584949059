"""Tuples and maps."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.functions.registry import Build, Row, Table, Unfit
from dovetail.sql.functions.timeplus.conditions import condition
from dovetail.sql.functions.timeplus.numbers import combined
from dovetail.sql.functions.typed import Typed, filled


def _tuple(arguments: Sequence[Typed]) -> exp.Expr:
    """Its elements are called 1, 2, .."""
    return _struct([argument.tree for argument in arguments])


def _struct(trees: Sequence[exp.Expr]) -> exp.Struct:
    return exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.to_identifier(str(place), quoted=True), expression=tree.copy())
            for place, tree in enumerate(trees, start=1)
        ]
    )


def _elements(value: Typed) -> list[Typed]:
    if not value.is_struct:
        raise Unfit(f"takes a tuple, not a {value.family}")
    return [
        value.of(
            filled("struct_extract({0}, {1})", [value.tree, exp.Literal.string(value.type.field(place).name)]),
            value.type.field(place).type,
        )
        for place in range(value.type.num_fields)
    ]


def _tuple_element(arguments: Sequence[Typed]) -> Typed:
    value, at = arguments
    elements = _elements(value)
    names = [value.type.field(place).name for place in range(len(elements))]
    if isinstance(at.literal, int):
        if not 1 <= at.literal <= len(names):
            raise Unfit(f"takes a position from 1 to {len(names)}")
        return elements[at.literal - 1]
    if at.literal in names:
        return elements[names.index(str(at.literal))]
    raise Unfit(f"takes a position or one of the names {', '.join(names)}, written out")


def _by_element(name: str) -> Build:
    def build(arguments: Sequence[Typed]) -> exp.Expr:
        left, right = map(_elements, arguments)
        if len(left) != len(right):
            raise Unfit(f"takes tuples of one length, not of {len(left)} and {len(right)}")
        return _struct([combined(name, *pair).tree for pair in zip(left, right, strict=True)])

    return build


def _tuple_concat(arguments: Sequence[Typed]) -> exp.Expr:
    return _struct([element.tree for argument in arguments for element in _elements(argument)])


def _map(arguments: Sequence[Typed]) -> exp.Expr:
    if len(arguments) % 2:
        raise Unfit("takes pairs of a key and a value")
    keys = exp.Array(expressions=[one.tree.copy() for one in arguments[::2]])
    values = exp.Array(expressions=[one.tree.copy() for one in arguments[1::2]])
    return filled("map({0}, {1})", [keys, values])


def _entries(arguments: Sequence[Typed]) -> tuple[exp.Expr, exp.Lambda]:
    """The entries of the map, and the lambda of a key and a value as one of an entry."""
    body, value = arguments
    if not isinstance(body.tree, exp.Lambda) or len(body.tree.expressions) != 2:
        raise Unfit("takes a lambda of a key and a value first: (k, v) -> v > 0")
    if not value.is_map:
        raise Unfit(f"takes a map, not a {value.family}")
    key, item = (parameter.name for parameter in body.tree.expressions)
    row = exp.to_identifier(f"{key},{item}", quoted=True)
    fields = {key: "key", item: "value"}

    def named(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and node.name in fields:
            return filled("struct_extract({0}, {1})", [exp.column(row.copy()), exp.Literal.string(fields[node.name])])
        return node

    entries = filled("map_entries({0})", [value.tree])
    return entries, exp.Lambda(this=body.tree.this.copy().transform(named), expressions=[row], colon=True)


def _of_entries(template: str) -> Build:
    """``{0}`` are the entries, ``{1}`` is the lambda, true or false."""

    def build(arguments: Sequence[Typed]) -> exp.Expr:
        entries, body = _entries(arguments)
        held = condition(arguments[0].of(body.this, arguments[0].type))
        return filled(template, [entries, exp.Lambda(this=held, expressions=body.expressions, colon=True)])

    return build


def _map_apply(arguments: Sequence[Typed]) -> exp.Expr:
    """What the lambda gives is a pair: its first element is the key."""
    entries, body = _entries(arguments)
    if not pa.types.is_struct(arguments[0].type) or arguments[0].type.num_fields != 2:
        raise Unfit("takes a lambda that gives a pair: (k, v) -> (k, v + 1)")
    return filled("map_from_entries(list_transform({0}, {1}))", [entries, body])


FUNCTIONS: Table = (
    Row("tuple(a, ..)", "a tuple of these: (a, ..)", _tuple),
    Row("tuple_element(tuple, which)", "an element, by position or name: t.1", _tuple_element),
    Row("tuple_plus(a, b)", "a + b, element by element", _by_element("plus")),
    Row("tuple_minus(a, b)", "a - b, element by element", _by_element("minus")),
    Row("tuple_multiply(a, b)", "a * b, element by element", _by_element("multiply")),
    Row("tuple_concat(a, ..)", "the tuples one after another", _tuple_concat),
    Row("map(key, value, ..)", "a map of these pairs", _map),
    Row("map_from_arrays(keys, values)", "a map of the pairs side by side", "map({0}, {1})"),
    Row("map_keys(map)", "its keys", "map_keys({0})"),
    Row("map_values(map)", "its values", "map_values({0})"),
    Row("map_contains(map, key)", "whether it has the key", "list_contains(map_keys({0}), {1})",
        also="map_contains_key"),
    Row("map_contains_value(map, value)", "whether it has the value", "list_contains(map_values({0}), {1})"),
    Row("map_update(a, b)", "the first with the pairs of the second", "map_concat({0}, {1})"),
    Row("map_concat(a, ..)", "the pairs of all of them", "map_concat({*})"),
    Row("map_apply((k, v) -> .., map)", "the pairs that the lambda gives", _map_apply),
    Row("map_filter((k, v) -> .., map)", "the pairs for which it holds",
        _of_entries("map_from_entries(list_filter({0}, {1}))")),
    Row("map_exists((k, v) -> .., map)", "whether it holds for one pair",
        _of_entries("coalesce(list_bool_or(list_transform({0}, {1})), false)"), pa.bool_()),
    Row("map_all((k, v) -> .., map)", "whether it holds for all pairs",
        _of_entries("coalesce(list_bool_and(list_transform({0}, {1})), true)"), pa.bool_()),
    Row("map_sort(map)", "in the order of its keys", "map_from_entries(list_sort(map_entries({0})))"),
)  # fmt: skip
