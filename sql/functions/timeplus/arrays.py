"""Arrays, maps and tuples; functions of them that take a lambda, ``x -> x + 1``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pyarrow as pa
from sqlglot import exp

from sql.functions.registry import Registry, Unfit
from sql.functions.typed import Typed, filled


def _expect_list(value: Typed) -> None:
    if not (value.is_list or value.is_null):
        raise Unfit(f"takes an array, not a {value.family}")


def _mapped(function: str) -> Callable[[Sequence[Typed]], exp.Expr]:
    """A function of a lambda and one or more arrays."""

    def build(arguments: Sequence[Typed]) -> exp.Expr:
        body, lists = arguments[0], arguments[1:]
        if not isinstance(body.tree, exp.Lambda):
            raise Unfit("takes a lambda first: x -> x + 1")
        for one in lists:
            _expect_list(one)
        if len(lists) == 1:
            return filled(f"{function}({{1}}, {{0}})", [body.tree, lists[0].tree])
        raise Unfit("takes a lambda of one argument and one array")

    return build


def _quantified(template: str) -> Callable[[Sequence[Typed]], exp.Expr]:
    """With a lambda, over what it gives; without, over the elements as conditions."""

    def build(arguments: Sequence[Typed]) -> exp.Expr:
        if isinstance(arguments[0].tree, exp.Lambda):
            held = _mapped("list_transform")(arguments)
        else:
            _expect_list(arguments[0])
            held = filled("list_transform({0}, lambda x: x <> 0)", [arguments[0].tree])
        return filled(template, [held])

    return build


def _aggregated(name: str) -> Callable[[Sequence[Typed]], exp.Expr]:
    def build(arguments: Sequence[Typed]) -> exp.Expr:
        if isinstance(arguments[0].tree, exp.Lambda):
            values = _mapped("list_transform")(arguments)
        else:
            _expect_list(arguments[0])
            values = arguments[0].tree
        return filled(f"{name}({{0}})", [values])

    return build


def _sum(arguments: Sequence[Typed]) -> exp.Expr:
    total = _aggregated("list_sum")(arguments)
    value = arguments[-1]
    inner = value.type.value_type if value.is_list else pa.float64()
    if pa.types.is_floating(inner):
        return filled("coalesce({0}, CASE WHEN {1} IS NULL THEN NULL ELSE CAST(0 AS DOUBLE) END)", [total, value.tree])
    if pa.types.is_decimal(inner):
        return filled("coalesce({0}, CASE WHEN {1} IS NULL THEN NULL ELSE 0 END)", [total, value.tree])
    wide = "UBIGINT" if pa.types.is_unsigned_integer(inner) else "BIGINT"
    return filled(f"CAST(coalesce({{0}}, CASE WHEN {{1}} IS NULL THEN NULL ELSE 0 END) AS {wide})", [total, value.tree])


def _element(arguments: Sequence[Typed]) -> exp.Expr:
    """From 1, below 0 from the end; the type's default where there is none."""
    value, at = arguments
    if value.is_map:
        return filled("{0}[{1}]", [value.tree, at.tree])
    _expect_list(value)
    default = default_text(value.type.value_type)
    if default is None:
        return filled("list_extract({0}, CAST({1} AS BIGINT))", [value.tree, at.tree])
    return filled(
        f"CASE WHEN {{0}} IS NULL OR {{1}} IS NULL THEN NULL WHEN {{1}} = 0 OR abs({{1}}) > len({{0}}) THEN {default} "
        "ELSE list_extract({0}, CAST({1} AS BIGINT)) END",
        [value.tree, at.tree],
    )


def default_text(kind: pa.DataType) -> str | None:
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "0"
    if pa.types.is_string(kind):
        return "''"
    if pa.types.is_boolean(kind):
        return "false"
    return None


def _slice(arguments: Sequence[Typed]) -> exp.Expr:
    """From the offset (from 1; below 0 from the end), so many elements; below 0 all but so many."""
    _expect_list(arguments[0])
    trees = [argument.tree for argument in arguments]
    start = "CASE WHEN {1} < 0 THEN greatest(len({0}) + {1} + 1, 1) ELSE {1} END"
    if len(trees) == 2:
        return filled(f"list_slice({{0}}, {start}, len({{0}}))", trees)
    stop = f"CASE WHEN {{2}} < 0 THEN len({{0}}) + {{2}} WHEN {{1}} < 0 THEN len({{0}}) + {{1}} + {{2}} ELSE {{1}} + {{2}} - 1 END"
    return filled(f"CASE WHEN {{2}} = 0 THEN list_slice({{0}}, 1, 0) ELSE list_slice({{0}}, {start}, {stop}) END", trees)


def _sorted(descending: bool) -> Callable[[Sequence[Typed]], exp.Expr]:
    order = "'DESC'" if descending else "'ASC'"

    def build(arguments: Sequence[Typed]) -> exp.Expr:
        if isinstance(arguments[0].tree, exp.Lambda):
            raise Unfit("takes an array alone")
        _expect_list(arguments[0])
        return filled(f"list_sort({{0}}, {order}, 'NULLS LAST')", [arguments[0].tree])

    return build


def _tuple(arguments: Sequence[Typed]) -> exp.Expr:
    named = ", ".join(f"'{index}': {{{index - 1}}}" for index in range(1, len(arguments) + 1))
    return filled(f"{{{named}}}".replace("{'1'", "{'1'"), [one.tree for one in arguments]) if False else exp.Struct(
        expressions=[
            exp.PropertyEQ(this=exp.to_identifier(str(index), quoted=True), expression=one.tree.copy())
            for index, one in enumerate(arguments, start=1)
        ]
    )


def _tuple_element(arguments: Sequence[Typed]) -> exp.Expr:
    value, at = arguments
    if not value.is_struct:
        raise Unfit(f"takes a tuple, not a {value.family}")
    names = [value.type.field(index).name for index in range(value.type.num_fields)]
    if isinstance(at.literal, int):
        if not 1 <= at.literal <= len(names):
            raise Unfit(f"takes a position from 1 to {len(names)}")
        name = names[at.literal - 1]
    elif at.literal in names:
        name = str(at.literal)
    else:
        raise Unfit(f"takes a position or one of the names {', '.join(names)}, written out")
    return filled("struct_extract({0}, {1})", [value.tree, exp.Literal.string(name)])


def _map(arguments: Sequence[Typed]) -> exp.Expr:
    if len(arguments) % 2:
        raise Unfit("takes pairs of a key and a value")
    keys = exp.Array(expressions=[one.tree.copy() for one in arguments[::2]])
    values = exp.Array(expressions=[one.tree.copy() for one in arguments[1::2]])
    return filled("map({0}, {1})", [keys, values])


def _range(arguments: Sequence[Typed]) -> exp.Expr:
    return filled(f"range({', '.join(f'CAST({{{index}}} AS BIGINT)' for index in range(len(arguments)))})", [one.tree for one in arguments])


def _has_all(arguments: Sequence[Typed]) -> exp.Expr:
    return filled("list_has_all({0}, {1})", [one.tree for one in arguments])


def register(registry: Registry) -> None:
    def add(usage: str, meaning: str, build: object, kind: pa.DataType | None = None, **more: object) -> None:
        registry.add(usage, meaning, build, kind, group="arrays", **more)  # type: ignore[arg-type]

    add("array(a, ..)", "an array of these", lambda given: exp.Array(expressions=[one.tree.copy() for one in given]), arity=(0, None))
    add("array_element(array, n)", "the n-th element, from 1; the type's default where there is none", _element, arity=(2, 2))
    add("array_concat(a, ..)", "the arrays one after another", "list_concat({*})")
    add("array_map(x -> .., array)", "what the lambda gives for each element", _mapped("list_transform"), arity=(2, None))
    add("array_filter(x -> .., array)", "the elements for which it holds", _mapped("list_filter"), arity=(2, None))
    add("array_exists(x -> .., array)", "whether it holds for one", _quantified("coalesce(list_bool_or({0}), false)"), arity=(1, None))
    add("array_all(x -> .., array)", "whether it holds for all", _quantified("coalesce(list_bool_and({0}), true)"), arity=(1, None))
    add("array_count(x -> .., array)", "for how many it holds", _quantified("CAST(len(list_filter({0}, lambda y: y)) AS UBIGINT)"), arity=(1, None))
    add("array_first(x -> .., array)", "the first for which it holds", lambda given: _element([given[1].of(_mapped("list_filter")(given), given[1].type), given[1].of(exp.Literal.number(1), pa.int32())]), arity=(2, 2))
    add("array_sum([x -> ..,] array)", "the sum", _sum, arity=(1, 2))
    add("array_min([x -> ..,] array)", "the least", _aggregated("list_min"), arity=(1, 2))
    add("array_max([x -> ..,] array)", "the greatest", _aggregated("list_max"), arity=(1, 2))
    add("array_avg([x -> ..,] array)", "the mean", _aggregated("list_avg"), arity=(1, 2))
    add("array_product(array)", "the product", _aggregated("list_product"), arity=(1, 2))
    add("array_distinct(array)", "each element once, in the order in which they come first", "list_filter(list_transform(range(1, len({0}) + 1), lambda i: CASE WHEN list_position({0}, {0}[i]) = i THEN {0}[i] END), lambda x: x IS NOT NULL)")
    add("array_uniq(array)", "how many different elements there are", "CAST(list_unique({0}) AS UBIGINT)", pa.uint64())
    add("array_sort(array)", "in order", _sorted(False), arity=(1, 2))
    add("array_reverse_sort(array)", "in falling order", _sorted(True), arity=(1, 2))
    add("array_reverse(array)", "from its end", "list_reverse({0})")
    add("array_slice(array, offset[, length])", "a part of it", _slice, arity=(2, 3))
    add("array_push_back(array, a)", "with one more at its end", "list_append({0}, {1})")
    add("array_push_front(array, a)", "with one more at its beginning", "list_prepend({1}, {0})")
    add("array_pop_back(array)", "without its last", "list_slice({0}, 1, len({0}) - 1)")
    add("array_pop_front(array)", "without its first", "list_slice({0}, 2, len({0}))")
    add("array_compact(array)", "neighbours that are equal once", "list_filter(list_transform(range(1, len({0}) + 1), lambda i: CASE WHEN i = 1 OR {0}[i] IS DISTINCT FROM {0}[i - 1] THEN {0}[i] END), lambda x: x IS NOT NULL)")
    add("array_enumerate(array)", "1, 2, .. for its elements", "list_transform(range(1, len({0}) + 1), lambda i: CAST(i AS UINTEGER))")
    add("array_flatten(array)", "the elements of the arrays in it", "flatten({0})", aliases="flatten")
    add("array_intersect(a, b)", "the elements that both have", "list_intersect({0}, {1})")
    add("array_string_concat(array[, separator])", "the texts with the separator between them", ["array_to_string({0}, '')", "array_to_string({0}, {1})"], pa.string())
    add("has(array, a)", "whether it has the element", "coalesce(list_contains({0}, {1}), CASE WHEN {0} IS NULL THEN NULL ELSE false END)")
    add("has_any(a, b)", "whether they share an element", "list_has_any({0}, {1})")
    add("has_all(a, b)", "whether the first has all of the second", _has_all, arity=(2, 2))
    add("index_of(array, a)", "where the element is, from 1; 0 where it is not", "CAST(coalesce(list_position({0}, {1}), 0) AS UBIGINT)", pa.uint64())
    add("count_equal(array, a)", "how often it has the element", "CAST(len(list_filter({0}, lambda x: x = {1})) AS UBIGINT)", pa.uint64())
    add("range([from,] to[, step])", "the numbers from, from + step, .., below to", _range, arity=(1, 3))
    add("tuple(a, ..)", "a tuple of these", _tuple, arity=(1, None))
    add("tuple_element(tuple, which)", "an element, by position or name", _tuple_element, arity=(2, 2))
    add("map(key, value, ..)", "a map of these pairs", _map, arity=(2, None))
    add("map_keys(map)", "its keys", "map_keys({0})")
    add("map_values(map)", "its values", "map_values({0})")
    add("map_contains(map, key)", "whether it has the key", "list_contains(map_keys({0}), {1})", aliases="map_contains_key")
