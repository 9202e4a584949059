"""Arrays, from 1; beyond their ends is NULL."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.functions.registry import Build, Row, Table, Unfit
from dovetail.sql.functions.risingwave.comparisons import concatenated, has_all, overlaps
from dovetail.sql.functions.risingwave.signatures import argument
from dovetail.sql.functions.risingwave.values.casts import cast, kind_in_common, unified
from dovetail.sql.functions.risingwave.values.kinds import (
    BIG,
    INT,
    TEXT,
    engine_name,
    is_unknown,
    kind_of,
    name_of,
    numeric,
    typed,
)
from dovetail.sql.functions.risingwave.values.texts import output_of
from dovetail.sql.functions.typed import Typed, filled


def _list(value: Typed) -> Typed:
    kind = kind_of(value)
    if not (pa.types.is_list(kind) or value.is_null):
        raise Unfit(f"takes an array, not {name_of(kind)}")
    return value


def _inner(array: Typed) -> pa.DataType:
    """The type of its elements; a NULL is an array of texts."""
    return TEXT if _list(array).is_null else kind_of(array).value_type


def _with_element(array: Typed, element: Typed) -> tuple[Typed, Typed]:
    """Both in the type that they have in common."""
    if is_unknown(array):
        array = cast(array, pa.list_(TEXT if is_unknown(element) else kind_of(element)))
    inner = kind_of(_list(array)).value_type
    kind = kind_in_common("an array", [array.of(exp.Null(), inner), element])
    return cast(array, pa.list_(kind)), cast(element, kind)


def _array(given: Sequence[Typed]) -> Typed | exp.Expr:
    if not given:
        return exp.Array(expressions=[])
    trees, kind = unified("an array", given)
    kind = pa.list_(kind)
    return given[0].of(
        filled("CAST({0} AS " + engine_name(kind) + ")", [exp.Array(expressions=[tree.copy() for tree in trees])]), kind
    )


def _element(given: Sequence[Typed]) -> Typed:
    array, at = _list(given[0]), argument(given[1], "int")
    return typed(array, "list_extract({0}, nullif(greatest({1}, 0), 0))", [array.tree, at.tree], _inner(array))


def _slice(given: Sequence[Typed]) -> Typed:
    """``array[low:high]``, either of which may be left out."""
    array, low, high = given
    _list(array)
    first = filled("1", []) if low.is_null else argument(low, "int").tree
    last = filled("len({0})", [array.tree]) if high.is_null else argument(high, "int").tree
    template = (
        "CASE WHEN greatest({2}, 0) < greatest({1}, 1) AND {1} IS NOT NULL AND {2} IS NOT NULL THEN "
        "list_slice({0}, 1, 0) "
        "WHEN {1} IS NOT NULL AND {2} IS NOT NULL THEN list_slice({0}, greatest({1}, 1), {2}) END"
    )
    return typed(array, template, [array.tree, first, last], kind_of(array))


def _of_list(template: str, gives: pa.DataType | None = None) -> Build:
    """A function of an array alone; its type is the array's, where none is named."""

    def build(given: Sequence[Typed]) -> Typed:
        array = _list(given[0])
        kind = gives or kind_of(array)
        return typed(array, f"CAST({template} AS {engine_name(kind)})", [array.tree], kind)

    return build


def _of_element(template: str, gives: pa.DataType | None = None) -> Build:
    """A function of an array and an element."""

    def build(given: Sequence[Typed]) -> Typed:
        array, element = _with_element(given[0], given[1])
        rest = [argument(value, "int").tree for value in given[2:]]
        kind = gives or kind_of(array)
        return typed(array, f"CAST({template} AS {engine_name(kind)})", [array.tree, element.tree, *rest], kind)

    return build


def _extreme(name: str) -> Build:
    return lambda given: typed(_list(given[0]), f"{name}({{0}})", [given[0].tree], _inner(given[0]))


def _sum(given: Sequence[Typed]) -> Typed:
    """As sum(): of integers a bigint, of bigints and numerics a numeric."""
    array = _list(given[0])
    inner = _inner(array)
    if pa.types.is_floating(inner):
        kind = inner
    elif pa.types.is_decimal(inner) or inner == BIG:
        kind = numeric(38, inner.scale if pa.types.is_decimal(inner) else 0)
    else:
        kind = BIG
    return typed(array, f"CAST(list_sum({{0}}) AS {engine_name(kind)})", [array.tree], kind)


def _replaced(given: Sequence[Typed]) -> Typed:
    array, old = _with_element(given[0], given[1])
    array, new = _with_element(array, given[2])
    template = "list_transform({0}, lambda e_: CASE WHEN e_ IS NOT DISTINCT FROM {1} THEN {2} ELSE e_ END)"
    return typed(array, template, [array.tree, cast(old, kind_of(array).value_type).tree, new.tree], kind_of(array))


def _to_text(given: Sequence[Typed]) -> Typed:
    """NULLs are left out, or stand as the third argument."""
    array, separator = _list(given[0]), argument(given[1], "text")
    element = output_of(array.of(exp.column("e_"), _inner(array))).tree
    if len(given) > 2:
        element = filled("coalesce({0}, {1})", [element, argument(given[2], "text").tree])
    shown = filled("list_filter(list_transform({0}, lambda e_: {1}), lambda t_: t_ IS NOT NULL)", [array.tree, element])
    if isinstance(given[1].literal, str):
        return typed(array, "array_to_string({0}, {1})", [shown, separator.tree], TEXT)
    # The engine's own takes a separator that is written out.
    template = (
        "CASE WHEN {1} IS NULL THEN NULL WHEN len({0}) = 0 THEN '' ELSE list_reduce({0}, lambda a_, b_: "
        "a_ || {1} || b_) END"
    )
    return typed(array, template, [shown, separator.tree], TEXT)


def _from_text(given: Sequence[Typed]) -> Typed:
    """Without a separator its characters; parts that equal the third argument are NULL."""
    text = argument(given[0], "text")
    kind = pa.list_(TEXT)
    if given[1].is_null:
        parts = filled("CASE WHEN {0} = '' THEN CAST([] AS VARCHAR[]) ELSE string_split({0}, '') END", [text.tree])
    else:
        separator = argument(given[1], "text").tree
        template = (
            "CASE WHEN {0} = '' THEN CAST([] AS VARCHAR[]) WHEN {1} IS NULL THEN string_split({0}, '') "
            "WHEN {1} = '' AND {0} IS NOT NULL THEN [{0}] ELSE string_split({0}, {1}) END"
        )
        parts = filled(template, [text.tree, separator])
    if len(given) == 3:
        parts = filled("list_transform({0}, lambda e_: nullif(e_, {1}))", [parts, argument(given[2], "text").tree])
    return text.of(parts, kind)


def _positions(given: Sequence[Typed]) -> Typed:
    array, element = _with_element(given[0], given[1])
    template = (
        "list_filter(list_transform(range(1, len({0}) + 1), lambda i_: CASE WHEN {0}[i_] IS NOT DISTINCT "
        "FROM {1} THEN CAST(i_ AS INTEGER) END), lambda p_: p_ IS NOT NULL)"
    )
    return typed(array, template, [array.tree, element.tree], pa.list_(INT))


def _dimension(template: str) -> Build:
    def build(given: Sequence[Typed]) -> Typed:
        array = _list(given[0])
        if len(given) > 1 and given[1].literal != 1:
            raise Unfit("counts along the first dimension: 1")
        return typed(array, f"CAST({template} AS INTEGER)", [array.tree], INT)

    return build


def _dimensions(given: Sequence[Typed]) -> Typed:
    array = _list(given[0])
    inner, depth = _inner(array), 1
    while pa.types.is_list(inner):
        inner, depth = inner.value_type, depth + 1
    return typed(array, f"CASE WHEN len({{0}}) > 0 THEN CAST({depth} AS INTEGER) END", [array.tree], INT)


_POSITION = (
    "CASE WHEN {0} IS NULL OR {2} IS NULL THEN NULL ELSE "
    "list_extract(list_filter(list_transform(range(1, len({0}) + 1), "
    "lambda i_: CASE WHEN i_ >= {2} AND {0}[i_] IS NOT DISTINCT FROM {1} THEN i_ END), lambda p_: p_ "
    "IS NOT NULL), 1) END"
)


def _position(given: Sequence[Typed]) -> Typed | exp.Expr | str:
    return _of_element(_POSITION if len(given) > 2 else _POSITION.replace("{2}", "1"), INT)(given)


def _trimmed(given: Sequence[Typed]) -> Typed:
    array, count = _list(given[0]), argument(given[1], "int")
    template = "CASE WHEN {1} BETWEEN 0 AND len({0}) THEN list_slice({0}, 1, len({0}) - {1}) END"
    return typed(array, template, [array.tree, count.tree], kind_of(array))


_FIRSTS = (
    "list_transform(list_filter(list_transform({0}, lambda e_, i_: {'v': e_, 'i': i_}), "
    "lambda p_: coalesce(list_position({0}, p_.v), p_.i) = p_.i), lambda p_: p_.v)"
)
_ONE = "CASE WHEN len({0}) > 0 THEN 1 END"


def _transformed(given: Sequence[Typed]) -> Typed:
    array, body = _list(given[0]), given[1]
    if not isinstance(body.tree, exp.Lambda) or len(body.tree.expressions) != 1:
        raise Unfit("takes a lambda of one name")
    return typed(array, "list_transform({0}, {1})", [array.tree, body.tree], pa.list_(kind_of(body)))


FUNCTIONS: Table = (
    Row("array(a, ..)", "ARRAY[a, ..]", _array, arity=(0, None)),
    Row("array_element(array, n)", "array[n]", _element),
    Row("array_slice(array, low, high)", "array[low:high]", _slice),
    Row("array_length(array[, 1])", "how many elements; NULL for an empty array", _dimension("nullif(len({0}), 0)"),
        also="array_upper"),
    Row("array_lower(array, 1)", "1; NULL for an empty array", _dimension(_ONE), arity=(1, 2)),
    Row("array_ndims(array)", "how many dimensions; NULL for an empty array", _dimensions),
    Row("cardinality(array)", "how many elements", _dimension("len({0})")),
    Row("array_append(array, a)", "with one more at its end", _of_element("list_append(coalesce({0}, []), {1})")),
    Row("array_prepend(a, array)", "with one more at its beginning",
        lambda given: _of_element("list_prepend({1}, coalesce({0}, []))")([given[1], given[0]])),
    Row("array_cat(a, b)", "one after another", lambda given: concatenated(_list(given[0]), _list(given[1]))),
    Row("array_remove(array, a)", "without the elements that equal it",
        _of_element("list_filter({0}, lambda e_: e_ IS DISTINCT FROM {1})")),
    Row("array_replace(array, a, b)", "with b for every a", _replaced),
    Row("array_position(array, a[, from])", "where the element is first; NULL where it is not", _position),
    Row("array_positions(array, a)", "where the element is", _positions),
    Row("array_distinct(array)", "each element once, in the order in which they come first", _of_list(_FIRSTS)),
    Row("array_sort(array)", "in order, NULLs last", _of_list("list_sort({0}, 'ASC', 'NULLS LAST')")),
    Row("array_reverse(array)", "from its end", _of_list("list_reverse({0})")),
    Row("array_min(array)", "the least", _extreme("list_min")),
    Row("array_max(array)", "the greatest", _extreme("list_max")),
    Row("array_sum(array)", "the sum", _sum),
    Row("array_contains(a, b)", "a @> b", lambda given: has_all(_list(given[0]), _list(given[1]))),
    Row("array_contained(a, b)", "a <@ b", lambda given: has_all(_list(given[1]), _list(given[0]))),
    Row("array_overlaps(a, b)", "a && b", lambda given: overlaps(_list(given[0]), _list(given[1])),
        also="array_is_overlap array_is_intersect"),
    Row("array_to_string(array, separator[, null])", "the elements with the separator between them", _to_text,
        also="array_join"),
    Row("string_to_array(text, separator[, null])", "the parts between the separators", _from_text),
    Row("array_transform(array, |x| value)", "the value for each element x", _transformed),
    Row("trim_array(array, n)", "without its last n elements", _trimmed),
)  # fmt: skip
