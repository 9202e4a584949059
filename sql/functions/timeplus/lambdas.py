"""Functions that take a lambda, ``x -> x + 1``, over the elements of one array or of several side by side."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.wording import counted
from dovetail.sql.functions.arguments import expect
from dovetail.sql.functions.registry import Build, Row, Table, Unfit
from dovetail.sql.functions.timeplus.arrays import default_of, element_at, total
from dovetail.sql.functions.timeplus.conditions import condition
from dovetail.sql.functions.typed import Typed, filled

_TRUE = "CAST({0} AS BOOLEAN)"


def is_lambda(value: Typed) -> bool:
    return isinstance(value.tree, exp.Lambda)


def over(arguments: Sequence[Typed]) -> tuple[exp.Expr, exp.Lambda]:
    """One list and a lambda of one argument: several arrays become one of tuples, and names their elements."""
    body, lists = arguments[0], arguments[1:]
    if not isinstance(body.tree, exp.Lambda):
        raise Unfit("takes a lambda first: x -> x + 1")
    expect("array", *lists)
    names = [parameter.name for parameter in body.tree.expressions]
    if len(names) != len(lists):
        raise Unfit(f"takes a lambda of {counted(len(lists), 'argument')}, one for each array, not of {len(names)}")
    if len(lists) == 1:
        return lists[0].tree, body.tree
    # A name that holds all the others: a lambda inside that hides one of them hides it here too.
    row = exp.to_identifier(",".join(names), quoted=True)
    elements = {
        name: filled("struct_extract({0}, {1})", [exp.column(row.copy()), exp.Literal.number(place)])
        for place, name in enumerate(names, start=1)
    }
    zipped = filled("list_zip({*})", [one.tree for one in lists])
    return zipped, exp.Lambda(this=_replaced(body.tree.this, elements), expressions=[row], colon=True)


def _replaced(tree: exp.Expr, by: dict[str, exp.Expr]) -> exp.Expr:
    """``tree`` with these names replaced, but where an inner lambda has arguments of the same names."""
    if isinstance(tree, exp.Column) and tree.name in by:
        return by[tree.name].copy()
    if isinstance(tree, exp.Lambda):
        inner = {parameter.name for parameter in tree.expressions}
        by = {name: element for name, element in by.items() if name not in inner}
    made = tree.copy()
    for part in list(made.iter_expressions()):
        part.replace(_replaced(part, by))
    return made


def _each(arguments: Sequence[Typed]) -> exp.Expr:
    """What the lambda gives for each element."""
    rows, body = over(arguments)
    return filled("list_transform({0}, {1})", [rows, body])


def flags(arguments: Sequence[Typed]) -> exp.Expr:
    """For each element whether the lambda holds; without a lambda, whether the element is not 0."""
    if not is_lambda(arguments[0]):
        expect("array", *arguments)
        return filled("list_transform({0}, lambda each_: each_ <> 0)", [arguments[0].tree])
    rows, body = over(arguments)
    held = filled("coalesce({0}, false)", [condition(arguments[0].of(body.this, arguments[0].type))])
    return filled("list_transform({0}, {1})", [rows, exp.Lambda(this=held, expressions=body.expressions, colon=True)])


def _values(arguments: Sequence[Typed]) -> Typed:
    """What the lambda gives for each element, or the elements themselves."""
    if is_lambda(arguments[0]):
        return arguments[0].of(_each(arguments), pa.list_(arguments[0].type))
    expect("array", *arguments)
    return arguments[0]


def kept(arguments: Sequence[Typed]) -> Typed:
    """The elements of the first array for which the lambda holds."""
    first = arguments[1]
    places = "list_filter(range(1, len({0}) + 1), lambda at_: {1}[at_])"
    tree = f"list_transform({places}, lambda at_: {{0}}[at_])"
    return first.of(filled(tree, [first.tree, flags(arguments)]), first.type)


def _found(end: int, *, or_null: bool) -> Build:
    """The first or the last element for which the lambda holds."""

    return lambda arguments: element_at(kept(arguments), exp.Literal.number(end), or_null=or_null)


def _place(template: str) -> Build:
    """A number that comes from the truth for each element."""

    return lambda arguments: filled(template, [flags(arguments)])


def _aggregated(name: str) -> Build:
    """The type's default for an array with nothing in it."""

    def build(arguments: Sequence[Typed]) -> exp.Expr:
        values = _values(arguments)
        kind = values.type.value_type if values.is_list else pa.null()
        default = "nan" if name == "list_avg" else default_of(kind)
        if name == "list_avg":
            return filled("CASE WHEN len({0}) = 0 THEN 0 ELSE list_avg({0}) END", [values.tree])
        if default is None:
            return filled(f"{name}({{0}})", [values.tree])
        return filled(f"CASE WHEN len({{0}}) = 0 THEN {default} ELSE {name}({{0}}) END", [values.tree])

    return build


def _sum(arguments: Sequence[Typed]) -> Typed:
    return total(_values(arguments))


def _product(arguments: Sequence[Typed]) -> exp.Expr:
    return filled("CASE WHEN len({0}) = 0 THEN 1 ELSE list_product({0}) END", [_values(arguments).tree])


def _running_sum(arguments: Sequence[Typed]) -> Typed:
    values = _values(arguments)
    part = total(values.of(filled("{0}[1:at_]", [values.tree]), values.type))
    kind = pa.list_(part.type)
    return values.of(filled("list_transform(range(1, len({0}) + 1), lambda at_: {1})", [values.tree, part.tree]), kind)


def _sorted(*, descending: bool) -> Build:
    """By the element, or by what the lambda gives for it; equal ones keep their order."""
    order = "DESC" if descending else "ASC"

    def build(arguments: Sequence[Typed]) -> Typed:
        if not is_lambda(arguments[0]):
            expect("array", *arguments)
            value = arguments[0]
            return value.of(filled(f"list_sort({{0}}, '{order}', 'NULLS LAST')", [value.tree]), value.type)
        keys, value = _each(arguments), arguments[1]
        places = "range(1, len({1}) + 1)" if not descending else "range(-1, -len({1}) - 1, -1)"
        ordered = f"list_sort(list_zip({{0}}, {places}), '{order}', 'NULLS LAST')"
        tree = f"list_transform({ordered}, lambda each_: {{1}}[abs(struct_extract(each_, 2))])"
        return value.of(filled(tree, [keys, value.tree]), value.type)

    return build


def _fold(arguments: Sequence[Typed]) -> Typed:
    """``array_fold((total, x) -> .., array, start)``"""
    body, values, start = arguments
    if not isinstance(body.tree, exp.Lambda) or len(body.tree.expressions) != 2:
        raise Unfit("takes a lambda of what has come together so far and an element")
    expect("array", values)
    return start.of(filled("list_reduce({0}, {1}, {2})", [values.tree, body.tree, start.tree]), start.type)


_OF_EMPTY = "the type's default for an array with nothing in it, also where its elements may be NULL"
_LAST_PLACE = "coalesce(list_max(list_filter(range(1, len({0}) + 1), lambda at_: {0}[at_])), 0)"

FUNCTIONS: Table = (
    Row("array_map((x, ..) -> .., array, ..)", "what the lambda gives for each element", _values),
    Row("array_filter((x, ..) -> .., array, ..)", "the elements of the first for which it holds", kept),
    Row("array_exists([(x, ..) -> ..,] array, ..)", "whether it holds for one",
        _place("coalesce(list_bool_or({0}), false)"), pa.bool_()),
    Row("array_all([(x, ..) -> ..,] array, ..)", "whether it holds for all",
        _place("coalesce(list_bool_and({0}), true)"), pa.bool_()),
    Row("array_count([(x, ..) -> ..,] array, ..)", "for how many it holds",
        _place("len(list_filter({0}, lambda each_: each_))"), pa.uint32()),
    Row("array_first_index([(x, ..) -> ..,] array, ..)", "the place of the first",
        _place("coalesce(list_position({0}, true), 0)"), pa.uint32()),
    Row("array_last_index([(x, ..) -> ..,] array, ..)", "the place of the last", _place(_LAST_PLACE), pa.uint32()),
    Row("array_first((x, ..) -> .., array, ..)", "the first for which it holds, or the type's default",
        _found(1, or_null=False)),
    Row("array_first_or_null((x, ..) -> .., array, ..)", "the first for which it holds, or NULL",
        _found(1, or_null=True)),
    Row("array_last((x, ..) -> .., array, ..)", "the last for which it holds, or the type's default",
        _found(-1, or_null=False)),
    Row("array_last_or_null((x, ..) -> .., array, ..)", "the last for which it holds, or NULL",
        _found(-1, or_null=True)),
    Row("array_sum([x -> ..,] array)", "the sum", _sum, arity=(1, None)),
    Row("array_min([x -> ..,] array)", "the least", _aggregated("list_min"), differs=_OF_EMPTY, arity=(1, None)),
    Row("array_max([x -> ..,] array)", "the greatest", _aggregated("list_max"), differs=_OF_EMPTY, arity=(1, None)),
    Row("array_avg([x -> ..,] array)", "the mean", _aggregated("list_avg"), pa.float64(), arity=(1, None)),
    Row("array_product([x -> ..,] array)", "the product", _product, pa.float64(), arity=(1, None)),
    Row("array_cum_sum([x -> ..,] array)", "the sums of the first 1, 2, .. elements", _running_sum, arity=(1, None)),
    Row("array_sort([x -> ..,] array)", "in order, by what the lambda gives", _sorted(descending=False),
        arity=(1, None)),
    Row("array_reverse_sort([x -> ..,] array)", "in falling order, by what the lambda gives",
        _sorted(descending=True), arity=(1, None)),
    Row("array_fold((total, x) -> .., array, start)", "the elements taken together one by one", _fold),
)  # fmt: skip
