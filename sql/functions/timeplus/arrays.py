"""Arrays: elements, parts, sets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.expressions.engine import type_name
from dovetail.sql.functions.arguments import checked, expect, trees_of
from dovetail.sql.functions.registry import Build, Row, Table, Unfit
from dovetail.sql.functions.sizes import LARGEST, sized
from dovetail.sql.functions.timeplus.comparable import expect_element
from dovetail.sql.functions.typed import Typed, filled

_PLACES = "range(1, len({0}) + 1)"
_CHOSEN = "list_transform(list_filter(range(1, len({0}) + 1), lambda at_: %s), lambda at_: {0}[at_])"
"""The elements of an array at the places ``at_`` for which something holds."""
_DIFFERENT = _CHOSEN % "list_position({0}, {0}[at_]) = at_"
"""Each element once, NULL too: list_position() finds NULL, which list_contains() does not."""
_DISTINCT = _CHOSEN % "{0}[at_] IS NOT NULL AND list_position({0}, {0}[at_]) = at_"
_NOT_NULLABLE = "the default is never NULL, which ClickHouse says where elements can be NULL"
_HAS_NULL = "list_position({%d}, NULL) IS NOT NULL"


def element_type(value: Typed) -> pa.DataType:
    expect("array", value)
    return value.type.value_type if value.is_list else pa.null()


def default_of(kind: pa.DataType) -> str | None:
    """What ClickHouse puts in the place of a value that is not there."""
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "0"
    if pa.types.is_string(kind):
        return "''"
    if pa.types.is_boolean(kind):
        return "false"
    if pa.types.is_date(kind):
        return "DATE '1970-01-01'"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMPTZ '1970-01-01 00:00:00+00'"
    if pa.types.is_list(kind):
        return f"CAST([] AS {type_name(kind)})"
    return None


def total(values: Typed) -> Typed:
    """The sum in 64 bits; 0 where there is nothing."""
    kind = element_type(values)
    if pa.types.is_decimal(kind):
        wide = pa.decimal128(38, kind.scale)
    elif pa.types.is_floating(kind):
        wide = pa.float64()
    else:
        wide = pa.uint64() if pa.types.is_unsigned_integer(kind) else pa.int64()
    added = "CASE WHEN {0} IS NOT NULL THEN coalesce(list_sum({0}), 0) END"
    return values.of(filled(f"CAST({added} AS {type_name(wide)})", [values.tree]), wide)


def element_at(value: Typed, place: exp.Expr, *, or_null: bool = False) -> exp.Expr:
    """From 1, below 0 from the end; where there is none the type's default, or NULL."""
    default = default_of(element_type(value))
    found = "list_extract({0}, CAST({1} AS BIGINT))"
    if or_null or default is None:
        return filled(found, [value.tree, place])
    outside = "{1} = 0 OR abs({1}) > len({0})"
    return filled(f"CASE WHEN {outside} THEN {default} ELSE {found} END", [value.tree, place])


def _element(arguments: Sequence[Typed]) -> exp.Expr:
    value, at = arguments
    if value.is_map:
        default = default_of(value.type.item_type)
        if default is None:
            return filled("{0}[{1}]", [value.tree, at.tree])
        there = "list_contains(map_keys({0}), {1})"
        return filled(f"CASE WHEN {there} THEN {{0}}[{{1}}] ELSE {default} END", [value.tree, at.tree])
    return element_at(value, at.tree)


def _array(arguments: Sequence[Typed]) -> exp.Expr:
    return exp.Array(expressions=[one.tree.copy() for one in arguments])


_START = "CASE WHEN {1} < 0 THEN greatest(len({0}) + {1} + 1, 1) ELSE {1} END"
_STOP = "CASE WHEN {2} < 0 THEN len({0}) + {2} WHEN {1} < 0 THEN len({0}) + {1} + {2} ELSE {1} + {2} - 1 END"
_SLICE = (f"list_slice({{0}}, {_START}, len({{0}}))", f"list_slice({{0}}, {_START}, {_STOP})")
"""From the offset (from 1; below 0 from the end), so many elements; below 0 all but so many."""


def _resized(arguments: Sequence[Typed]) -> exp.Expr:
    kind = element_type(arguments[0])
    trees = [*trees_of(arguments[:2]), _fill(arguments)]
    # Of a size that is NULL it would make an empty array.
    array, size = f"CASE WHEN {{1}} <= {LARGEST} THEN {{0}} END", f"CAST({sized('{1}')} AS BIGINT)"
    return filled(f"list_resize({array}, {size}, CAST({{2}} AS {type_name(kind)}))", trees)


def _rotated(sign: str) -> str:
    by = f"(({sign}{{1}}) % len({{0}}) + len({{0}})) % len({{0}})"
    turned = f"list_concat(list_slice({{0}}, {by} + 1, len({{0}})), list_slice({{0}}, 1, {by}))"
    return f"CASE WHEN len({{0}}) = 0 THEN {{0}} ELSE {turned} END"


def _fill(arguments: Sequence[Typed]) -> exp.Expr:
    """The third argument, or the default of the elements."""
    return arguments[2].tree if len(arguments) == 3 else filled(default_of(element_type(arguments[0])) or "NULL", [])


def _moved(*, left: bool) -> Build:
    """Elements pushed out at one end, and defaults in at the other."""

    def build(arguments: Sequence[Typed]) -> exp.Expr:
        kind = type_name(element_type(arguments[0]))
        fills = f"list_transform(range(least({{1}}, len({{0}}))), lambda at_: CAST({{2}} AS {kind}))"
        rest = "list_slice({0}, {1} + 1, len({0}))" if left else "list_slice({0}, 1, greatest(len({0}) - {1}, 0))"
        parts = f"{rest}, {fills}" if left else f"{fills}, {rest}"
        return filled(f"list_concat({parts})", [*trees_of(arguments[:2]), _fill(arguments)])

    return build


def _flattened(arguments: Sequence[Typed]) -> exp.Expr:
    """As deep as arrays of arrays go."""
    tree, kind = arguments[0].tree, element_type(arguments[0])
    while pa.types.is_list(kind):
        tree, kind = filled("flatten({0})", [tree]), kind.value_type
    return tree


def _uniq(arguments: Sequence[Typed]) -> exp.Expr:
    """Of several arrays the combinations of their elements side by side."""
    rows = arguments[0].tree if len(arguments) == 1 else filled("list_zip({*})", trees_of(arguments))
    # NULL is a value of its own here, and none to the engine.
    null = "CASE WHEN len({0}) > len(list_filter({0}, lambda each_: each_ IS NOT NULL)) THEN 1 ELSE 0 END"
    return filled(f"list_unique({{0}}) + {null}", [rows])


def _intersect(arguments: Sequence[Typed]) -> str:
    held = " AND ".join(f"list_position({{{place}}}, {{0}}[at_]) > 0" for place in range(1, len(arguments)))
    return _CHOSEN % f"list_position({{0}}, {{0}}[at_]) = at_ AND {held or 'true'}"


def _zip(arguments: Sequence[Typed]) -> str:
    """An array of tuples, whose elements are called 1, 2, .. as those of every tuple."""
    row = ", ".join(f"'{place}': {{{place - 1}}}[at_]" for place in range(1, len(arguments) + 1))
    return f"list_transform({_PLACES}, lambda at_: {{{row}}})"


def _difference(arguments: Sequence[Typed]) -> str:
    wide = "DOUBLE" if pa.types.is_floating(element_type(arguments[0])) else "BIGINT"
    step = f"CASE WHEN at_ = 1 THEN 0 ELSE CAST({{0}}[at_] AS {wide}) - {{0}}[at_ - 1] END"
    return f"list_transform({_PLACES}, lambda at_: CAST({step} AS {wide}))"


def _dot_product(arguments: Sequence[Typed]) -> Typed:
    first, second = arguments
    kinds = [element_type(one) for one in arguments]
    wide = pa.float64() if any(map(pa.types.is_floating, kinds)) else pa.int64()
    product = f"CAST({{0}}[at_] AS {type_name(wide)}) * {{1}}[at_]"
    products = filled(f"list_transform({_PLACES}, lambda at_: {product})", [first.tree, second.tree])
    return total(first.of(products, pa.list_(wide)))


def _single(arguments: Sequence[Typed]) -> str:
    kind = element_type(arguments[0])
    default = default_of(kind) or "NULL"
    one = f"[CAST({default} AS {type_name(kind)})]"
    return f"CASE WHEN len({{0}}) = 0 THEN {one} ELSE {{0}} END"


_REDUCED = {
    "sum": "list_sum({0})",
    "min": "list_min({0})",
    "max": "list_max({0})",
    "avg": "list_avg({0})",
    "count": "CAST(len({0}) AS UBIGINT)",
    "uniq_exact": "CAST(list_unique({0}) AS UBIGINT)",
    "group_array": "{0}",
}


def _reduced(arguments: Sequence[Typed]) -> exp.Expr | Typed:
    name = str(arguments[0].literal)
    if name not in _REDUCED:
        raise Unfit(f"knows {', '.join(_REDUCED)}, not '{name}'")
    if name == "sum":
        return total(arguments[1])
    return filled(_REDUCED[name], [arguments[1].tree])


def _range(arguments: Sequence[Typed]) -> str:
    numbers = [f"CAST({{{place}}} AS BIGINT)" for place in range(len(arguments))]
    begin, end, step = ("0", *numbers, "1") if len(numbers) == 1 else (*numbers, "1")[:3]
    # In doubles, as the distance of two numbers of 64 bits may have more.
    count = f"abs((CAST({end} AS DOUBLE) - {begin}) / nullif({step}, 0))"
    bounded = f"CASE WHEN coalesce({count}, 0) <= {LARGEST} THEN {end} END"
    return f"range({', '.join([begin, bounded, *numbers[2:]])})"


_WITHIN = (
    "list_bool_or(list_transform(range(1, len({0}) - len({1}) + 2), lambda at_: {0}[at_:at_ + len({1}) - 1] = {1}))"
)


_NTH = "the n-th element, from 1, below 0 from the end"
_NUMBERED = f"list_transform({_PLACES}, lambda at_: CAST(%s AS UINTEGER))"
_BEFORE = "len(list_filter({0}[1:at_], lambda each_: each_ IS NOT DISTINCT FROM {0}[at_]))"
_TIMES = f"CAST(CASE WHEN {{0}} < 0 THEN 0 ELSE {sized('{0}')} END AS BIGINT)"
_OF_FIRST, _OF_SECOND = _HAS_NULL % 0, _HAS_NULL % 1


_among = partial(checked, expect_element)
FUNCTIONS: Table = (
    Row("array(a, ..)", "an array of these", _array, arity=(0, None)),
    Row("array_element(array, n)", f"{_NTH}; the type's default where there is none", _element,
        differs=_NOT_NULLABLE),
    Row("array_element_or_null(array, n)", f"{_NTH}; NULL where there is none",
        lambda given: element_at(given[0], given[1].tree, or_null=True), takes="array integer"),
    Row("array_concat(a, ..)", "the arrays one after another", "list_concat({*})"),
    Row("array_distinct(array)", "each element once, in the order in which they come first", _DISTINCT),
    Row("array_uniq(array, ..)", "how many different elements there are", _uniq, pa.uint32(), takes="array"),
    Row("array_reverse(array)", "from its end", "list_reverse({0})"),
    Row("array_slice(array, offset[, length])", "a part of it", _SLICE, takes="array any"),
    Row("array_push_back(array, a)", "with one more at its end", "list_append({0}, {1})"),
    Row("array_push_front(array, a)", "with one more at its beginning", "list_prepend({1}, {0})"),
    Row("array_pop_back(array)", "without its last", "list_slice({0}, 1, len({0}) - 1)"),
    Row("array_pop_front(array)", "without its first", "list_slice({0}, 2, len({0}))"),
    Row("array_resize(array, n[, fill])", "cut, or filled up, to n elements", _resized),
    Row("array_rotate_left(array, n)", "its first n at its end", _rotated("")),
    Row("array_rotate_right(array, n)", "its last n at its beginning", _rotated("-")),
    Row("array_shift_left(array, n[, fill])", "without its first n, filled up at the other end", _moved(left=True)),
    Row("array_shift_right(array, n[, fill])", "without its last n, filled up at the other end", _moved(left=False)),
    Row("array_compact(array)", "neighbours that are equal once",
        _CHOSEN % "at_ = 1 OR {0}[at_] IS DISTINCT FROM {0}[at_ - 1]"),
    Row("array_remove(array, a)", "without the elements that equal a",
        "list_filter({0}, lambda each_: each_ IS DISTINCT FROM {1})"),
    Row("array_enumerate(array)", "1, 2, .. for its elements", _NUMBERED % "at_"),
    Row("array_enumerate_uniq(array)", "for each element how often it has come", _NUMBERED % _BEFORE),
    Row("array_enumerate_dense(array)", "for each element the number of its value",
        _NUMBERED % f"list_position({_DIFFERENT.replace('at_', 'of_')}, {{0}}[at_])"),
    Row("array_flatten(array)", "the elements of the arrays in it", _flattened, also="flatten"),
    Row("array_intersect(a, b, ..)", "the elements that all have", _intersect, takes="array", arity=(1, None)),
    Row("array_string_concat(array[, separator])", "the texts with the separator between them",
        ("array_to_string({0}, '')", "array_to_string({0}, {1})"), pa.string(), takes="array any"),
    Row("array_with_constant(n, a)", "n times a", f"list_transform(range({_TIMES}), lambda at_: {{1}})"),
    Row("array_zip(a, ..)", "an array of tuples of the elements side by side", _zip, takes="array"),
    Row("array_difference(array)", "what each element adds to the one before", _difference),
    Row("array_dot_product(a, b)", "the sum of the products side by side", _dot_product, takes="array"),
    Row("array_reduce(aggregate, array)", "sum, min, max, avg, count .. of its elements", _reduced),
    Row("empty_array_to_single(array)", "one default where there is nothing", _single),
    Row("has(array, a)", "whether it has the element",
        _among("CASE WHEN {0} IS NOT NULL THEN list_position({0}, {1}) IS NOT NULL END")),
    Row("has_any(a, b)", "whether they share an element",
        f"list_has_any({{0}}, {{1}}) OR ({_OF_FIRST} AND {_OF_SECOND})",
        differs="NULL equals NULL alone; ClickHouse also takes it for what it keeps in its place, a 0 mostly"),
    Row("has_all(a, b)", "whether the first has all of the second",
        f"list_has_all({{0}}, {{1}}) AND ({_OF_FIRST} OR NOT ({_OF_SECOND}))"),
    Row("has_substr(a, b)", "whether the first contains the second, in its order",
        f"coalesce(len({{1}}) = 0 OR {_WITHIN}, false)"),
    Row("index_of(array, a)", "where the element is, from 1; 0 where it is not",
        _among("coalesce(list_position({0}, {1}), 0)"), pa.uint64()),
    Row("count_equal(array, a)", "how often it has the element",
        _among("len(list_filter({0}, lambda each_: each_ IS NOT DISTINCT FROM {1}))"), pa.uint64()),
    Row("range([from,] to[, step])", f"the numbers from, from + step, .., below to; NULL where more than {LARGEST:,}",
        _range, takes="number"),
)  # fmt: skip
