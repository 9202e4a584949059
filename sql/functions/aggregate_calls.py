"""Aggregate functions of both dialects: from a call as it is written to one of the engine.

Where the result depends on the order of rows, it is that of their values, so that it is the same however they come:
an array is sorted, and of equal ones the least is taken. ORDER BY within the call goes before that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import pyarrow as pa
from sqlglot import exp
from sqlglot.helper import ensure_list

from dovetail.changelog.errors import SqlError, UnknownName, Unsupported
from dovetail.changelog.suggest import nearest
from dovetail.sql.expressions.aggregate_functions import FOLDS, call_of, call_types, is_call, outermost
from dovetail.sql.expressions.engine import type_name
from dovetail.sql.functions.typed import filled
from dovetail.sql.syntax.calls import registered_name
from dovetail.sql.syntax.rules import Rules

_TEMPLATES: Mapping[str, str] = {
    "count": "count({0})",
    "sum": "sum({0})",
    "avg": "avg({0})",
    "min": "min({0})",
    "max": "max({0})",
    # Of any value it is said which, so that it is the same whatever the order of rows.
    "any": "min({0})",
    "any_value": "min({0})",
    "bool_and": "bool_and({0})",
    "every": "bool_and({0})",
    "bool_or": "bool_or({0})",
    # An estimate would change with the order of rows.
    "uniq": "count(DISTINCT {0})",
    "uniq_exact": "count(DISTINCT {0})",
    "uniq_combined": "count(DISTINCT {0})",
    "uniq_hll12": "count(DISTINCT {0})",
    "unique": "count(DISTINCT {0})",
    "unique_exact": "count(DISTINCT {0})",
    "count_distinct": "count(DISTINCT {0})",
    "approx_count_distinct": "count(DISTINCT {0})",
    "approx_distinct": "count(DISTINCT {0})",
    "uniq_combined64": "count(DISTINCT {0})",
    "uniq_theta": "count(DISTINCT {0})",
    "group_array": "array_agg({0} ORDER BY {0}) FILTER (WHERE {0} IS NOT NULL)",
    "group_uniq_array": "array_agg(DISTINCT {0} ORDER BY {0}) FILTER (WHERE {0} IS NOT NULL)",
    "top_k": "array_agg({0} ORDER BY {0}) FILTER (WHERE {0} IS NOT NULL)",
    "min_k": "array_agg({0} ORDER BY {0}) FILTER (WHERE {0} IS NOT NULL)",
    "max_k": "array_agg({0} ORDER BY {0} DESC) FILTER (WHERE {0} IS NOT NULL)",
    "array_agg": "array_agg({0} ORDER BY {0})",
    "string_agg": "string_agg({0}, {1} ORDER BY {0})",
    "group_concat": "string_agg({0}, {1} ORDER BY {0})",
    "jsonb_agg": "'[' || string_agg({0}, ',' ORDER BY {0}) || ']'",
    # A name that is NULL makes no document; of several values of one name the last in order counts, so null is first.
    "jsonb_object_agg": "CASE WHEN NOT bool_or({0} IS NULL) THEN "
    "'{' || string_agg({0} || ':' || {1}, ',' ORDER BY {0}, {1} <> 'null', {1}) || '}' END",
    "arg_max": "arg_max({0}, {1} ORDER BY {0})",
    "arg_min": "arg_min({0}, {1} ORDER BY {0})",
    "max_by": "arg_max({0}, {1} ORDER BY {0})",
    "min_by": "arg_min({0}, {1} ORDER BY {0})",
    "first": "first({0})",
    "earliest": "first({0})",
    "last": "last({0})",
    "latest": "last({0})",
    "any_last": "last({0})",
    "first_value": "first({0})",
    "last_value": "last({0})",
    "median": "quantile_cont({0}, 0.5)",
    "median_exact": "quantile_cont({0}, 0.5)",
    "median_tdigest": "quantile_cont({0}, 0.5)",
    "approx_percentile": "quantile_cont({0}, {1})",
    "mode": "mode({0} ORDER BY {0})",
    "group_bit_and": "bit_and({0})",
    "group_bit_or": "bit_or({0})",
    "group_bit_xor": "bit_xor({0})",
    # Their last digits would change with the order of rows.
    "stddev": "stddev_samp({0} ORDER BY {0})",
    "stddev_samp": "stddev_samp({0} ORDER BY {0})",
    "stddev_pop": "stddev_pop({0} ORDER BY {0})",
    "variance": "var_samp({0} ORDER BY {0})",
    "var_samp": "var_samp({0} ORDER BY {0})",
    "var_pop": "var_pop({0} ORDER BY {0})",
    "corr": "corr({0}, {1} ORDER BY {0}, {1})",
    "covar_samp": "covar_samp({0}, {1} ORDER BY {0}, {1})",
    "covar_pop": "covar_pop({0}, {1} ORDER BY {0}, {1})",
    # Of the pairs of which neither is NULL; y comes first.
    "regr_count": "count({1}) FILTER (WHERE {0} IS NOT NULL)",
    "regr_avgx": "avg({1}) FILTER (WHERE {0} IS NOT NULL)",
    "regr_avgy": "avg({0}) FILTER (WHERE {1} IS NOT NULL)",
    # DuckDB's own slope of equal x is NaN.
    "regr_slope": "regr_sxy({0}, {1} ORDER BY {0}, {1}) / nullif(regr_sxx({0}, {1} ORDER BY {0}, {1}), 0)",
    "regr_intercept": "regr_intercept({0}, {1} ORDER BY {0}, {1})",
    "regr_r2": "regr_r2({0}, {1} ORDER BY {0}, {1})",
    "p90": "quantile_cont({0}, 0.9)",
    "p95": "quantile_cont({0}, 0.95)",
    "p99": "quantile_cont({0}, 0.99)",
}
_LEVELLED = {
    "quantile": "quantile_cont",
    "quantile_exact": "quantile_disc",
    "quantiles": "quantile_cont",
    # An estimate would change with the order of rows, and the rows are there.
    "quantile_tdigest": "quantile_cont",
    "quantile_timing": "quantile_cont",
}
"""Aggregates with a level before their argument: ``quantile(0.9)(x)``."""
_MOST_FREQUENT = (
    "list_transform(list_slice(list_sort(list_transform(map_entries(list_histogram({0})), lambda __e: "
    "{'n': -CAST(struct_extract(__e, 'value') AS BIGINT), 'v': struct_extract(__e, 'key')})), 1, {1}), "
    "lambda __e: struct_extract(__e, 'v'))"
)
_OF_VALUES = {
    "group_array": "{0}",
    "group_uniq_array": "{0}",
    "top_k": _MOST_FREQUENT,
    "min_k": "list_slice({0}, 1, {1})",
    "max_k": "list_slice({0}, 1, {1})",
}
"""What is made of the array of a group's values, of which there may be none; {1} is how many are asked for."""
_ASK_HOW_MANY = frozenset({"top_k", "min_k", "max_k"})
DOCUMENTS = frozenset({"jsonb_agg", "jsonb_object_agg"})
"""Aggregates that make a JSON document of the texts of others."""
OF_ONE = frozenset(
    {
        *("any", "any_value", "first", "last", "first_value", "last_value"),
        *("lag", "lead", "nth_value", "mode", "arg_min", "arg_max"),
    }
)
"""Those that give one of the values."""
_LEVELLED_CALLS = (exp.ParameterizedAgg, exp.CombinedParameterizedAgg)
_IN_ORDER = {
    "percentile_cont": "quantile_cont({0}, {1})",
    "percentile_disc": "quantile_disc({0}, {1})",
    "approx_percentile": "quantile_cont({0}, {1})",
    "mode": "mode({0} ORDER BY {0})",
}
"""Aggregates of values in order: WITHIN GROUP (ORDER BY x)."""
_OF_WINDOWS = frozenset(
    {"row_number", "rank", "dense_rank", "lag", "lead", "nth_value", "ntile", "percent_rank", "cume_dist"}
)
"""Functions of windows alone, which keep their form."""

_SPELLED = {
    "logical_and": "bool_and",
    "logical_or": "bool_or",
    "variance_pop": "var_pop",
    "approx_quantile": "quantile",
    "bitwise_and_agg": "group_bit_and",
    "bitwise_or_agg": "group_bit_or",
    "bitwise_xor_agg": "group_bit_xor",
}
"""sqlglot's names of functions that the dialects spell otherwise."""
_BITS = frozenset({"bit_and", "bit_or", "bit_xor"})
"""Aggregates of one argument, and functions of two."""

_REGRESSION = "regr_"
"""What the names of aggregates of pairs begin with of which some have two calls of the engine."""

_EARLIEST = frozenset({"first", "earliest", "first_value"})
_LATEST = frozenset({"last", "latest", "last_value", "any_last"})
_COMBINATORS = ("_if", "_distinct")
"""Ends of names: ``sum_if(x, condition)``, ``sum_distinct(x)``."""

Part = Callable[[exp.Expr], exp.Expr]
"""How a part of a call is translated."""


def aggregate_names() -> tuple[str, ...]:
    return (*_TEMPLATES, "count_if", *_LEVELLED, *sorted(_BITS))


def aggregate_name(node: exp.Expr) -> str:
    """The name of the aggregate, or the function of windows, that ``node`` calls; '' for what is none."""
    name = registered_name(node)
    name = _SPELLED.get(name, name)
    if name.removesuffix("_if") in _BITS and len(node.expressions) == 1 + name.endswith("_if"):
        return f"group_{name}"
    known = isinstance(node, exp.AggFunc) or name in _OF_WINDOWS
    return name if known or _without_combinators(name) in {*_TEMPLATES, *_LEVELLED} else ""


def _without_combinators(name: str) -> str:
    """``sum`` of ``sum_if``; a name that has a meaning of its own stays."""
    for end in _COMBINATORS:
        if name not in _TEMPLATES and name.endswith(end):
            return _without_combinators(name.removesuffix(end))
    return name


def by_time(node: exp.Expr, time: exp.Expr) -> exp.Expr | None:
    """``latest(x)`` as ``arg_max(x, time)``, so that it hangs on no order of rows.

    None for what is no such call, or has an order of its own.
    """
    name = aggregate_name(node)
    base = _without_combinators(name)
    around = node.parent
    while isinstance(around, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        around = around.parent
    if base not in _EARLIEST | _LATEST or isinstance(around, exp.Window):
        return None
    given, order, distinct = _parts(node)
    if order or distinct or not given:
        return None
    extreme = ("arg_min" if base in _EARLIEST else "arg_max") + name.removeprefix(base)
    arguments = [given[0].copy(), time.copy(), *(one.copy() for one in given[1:])]
    return exp.Anonymous(this=extreme, expressions=arguments)


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is a call of an aggregate by itself: its FILTER, where it has one, stands around it."""
    return isinstance(node, exp.Expr) and bool(aggregate_name(node))


def aggregates_in(expression: exp.Expr) -> Iterator[exp.Expr]:
    """The aggregates of an expression, each with its FILTER; those of subqueries and window functions apart."""
    return outermost(expression, is_aggregate_call)


def is_aggregate_call(node: exp.Expr) -> bool:
    """Whether a node is an aggregate, with its FILTER or WITHIN GROUP where it has one."""
    return is_aggregate(node.this if isinstance(node, exp.Filter | exp.WithinGroup) else node)


def is_window_call(tree: exp.Expr) -> bool:
    """Whether it is a call of the engine that a window can be of."""
    return is_call(tree) or (isinstance(tree, exp.Anonymous) and str(tree.this).lower() in _OF_WINDOWS)


def counts_distinct(node: exp.Expr) -> bool:
    """Whether a call asks how many values there are that differ."""
    node = node.this if isinstance(node, exp.Filter) else node
    name = _without_combinators(aggregate_name(node))
    return _TEMPLATES.get(name) == _TEMPLATES["uniq"] or (name == "count" and _parts(node)[2])


def aggregate_tree(node: exp.Expr, argument: Part, term: Part, condition: Part, place: str) -> exp.Expr:
    """The engine's call, its parts translated by ``argument``, ``term`` (those of ORDER BY) and ``condition``. Raises
    UnknownName.
    """
    if isinstance(node, exp.Filter):
        return filtered(aggregate_tree(node.this, argument, term, condition, place), condition(node.expression.this))
    if isinstance(node, exp.WithinGroup):
        return _within_group(node, argument, term, place)
    name, (given, order, distinct) = aggregate_name(node), _parts(node)
    if name in _OF_WINDOWS:
        if distinct or order:
            raise Unsupported(
                f"{name}() takes neither DISTINCT nor ORDER BY",
                where=place,
                fix=f"{name}({'x' if given else ''}) OVER (ORDER BY t)",
            )
        return exp.Anonymous(this=name, expressions=[argument(one) for one in given])
    order = [_term(one, term) for one in order]
    if name.endswith("_distinct") and name not in _TEMPLATES:
        name, distinct = name.removesuffix("_distinct"), True
    if name.endswith("_if") and name not in _TEMPLATES:
        if not given:
            raise SqlError(f"{name}() takes a condition", where=place, fix=f"{name}(x, condition)")
        holds, given, name = condition(given[-1]), given[:-1], name.removesuffix("_if")
        if name.endswith("_distinct") and name not in _TEMPLATES:
            name, distinct = name.removesuffix("_distinct"), True
        return filtered(_built(name, given, distinct, order, node, argument, place), holds)
    return _built(name, given, distinct, order, node, argument, place)


def _within_group(node: exp.WithinGroup, argument: Part, term: Part, place: str) -> exp.Expr:
    """``percentile_cont(0.5) WITHIN GROUP (ORDER BY x)``"""
    name = aggregate_name(node.this)
    wanted = _IN_ORDER.get(name)
    ordered = node.expression.expressions
    levels = [one for one in (*node.this.expressions, node.this.this) if isinstance(one, exp.Expr)]
    if wanted is None or len(ordered) != 1 or (name != "mode" and not levels):
        raise SqlError(
            f"{name}() has no WITHIN GROUP of this form",
            where=place,
            fix="percentile_cont(0.5) WITHIN GROUP (ORDER BY x)",
        )
    value = argument(ordered[0].this)
    if name == "mode":
        # Of several that are as frequent, the first in this order.
        made = filled(wanted, [value])
        for order in made.find_all(exp.Order):
            order.set("expressions", [_term(ordered[0], term)])
        return made
    level = argument(levels[0])
    if name == "approx_percentile":
        # How far an estimate may be off: the value itself is within that.
        for error in levels[1:2]:
            argument(error)
    if ordered[0].args.get("desc"):
        level = exp.Sub(this=exp.Literal.number(1), expression=level.copy())
    return filled(wanted, [value, level])


def filtered(tree: exp.Expr, condition: exp.Expr) -> exp.Expr:
    """An aggregate over the rows for which ``condition`` holds, besides the FILTER that it has; of what is made of an
    aggregate, that within it.
    """
    if not isinstance(tree, exp.Filter | exp.AggFunc):
        for inner in list(outermost(tree, is_call)):
            inner.replace(filtered(inner.copy(), condition.copy()))
        return tree
    if isinstance(tree, exp.Filter):
        both = exp.and_(tree.expression.this.copy(), condition)
        return exp.Filter(this=tree.this, expression=exp.Where(this=both))
    return exp.Filter(this=tree, expression=exp.Where(this=condition))


def _parts(node: exp.Expr) -> tuple[list[exp.Expr], list[exp.Ordered], bool]:
    """What stands in the brackets: arguments, those of DISTINCT too; the terms of ORDER BY; whether DISTINCT does."""
    if isinstance(node, _LEVELLED_CALLS):
        given = list(node.args["params"])
    elif isinstance(node, exp.Anonymous | exp.CombinedAggFunc | exp.AnonymousAggFunc):
        given = list(node.expressions)
    else:
        given = [
            one for part in node.arg_types for one in ensure_list(node.args.get(part)) if isinstance(one, exp.Expr)
        ]
    order = [term for one in given if isinstance(one, exp.Order) for term in one.expressions]
    given = [one.this if isinstance(one, exp.Order) else one for one in given]
    distinct = any(isinstance(one, exp.Distinct) for one in given)
    spread = [one.expressions if isinstance(one, exp.Distinct) else [one] for one in given]
    return [one for several in spread for one in several], order, distinct


def _term(term: exp.Ordered, translated: Part) -> exp.Ordered:
    made = term.copy()
    made.set("this", translated(term.this))
    # Where it is not said, that of the dialect: the parser has found it out.
    made.set("nulls_first", bool(term.args.get("nulls_first")))
    return made


def _built(
    name: str,
    given: list[exp.Expr],
    distinct: bool,
    order: list[exp.Ordered],
    node: exp.Expr,
    argument: Part,
    place: str,
) -> exp.Expr:
    if name in _LEVELLED:
        return _levelled(name, given, node, argument)
    given, size = _size(name, given, node)
    _refuse_beside_groups(name, distinct, node, place)
    given = _as_members(given) if name in DOCUMENTS else given
    arguments = [argument(one) for one in given]
    if name == "count" and (not arguments or (len(arguments) == 1 and isinstance(arguments[0], exp.Star))):
        return exp.Count(this=exp.Star())
    if len(arguments) > 1 and ((name == "count" and distinct) or _TEMPLATES.get(name) == _TEMPLATES["uniq"]):
        return exp.Count(this=exp.Distinct(expressions=arguments))
    template = _TEMPLATES.get(name)
    if template is None:
        close = nearest(name, aggregate_names())
        fix = f"did you mean {close}()?" if close else "docs/functions.md lists the aggregates"
        raise UnknownName(f"there is no aggregate {name}()", where=place, fix=fix)
    wanted = 2 if "{1}" in template else 1
    if name in ("string_agg", "group_concat") and len(arguments) == 1:
        arguments = [*arguments, exp.Literal.string("" if name == "string_agg" else ",")]
    if len(arguments) != wanted:
        form = "count(DISTINCT concat(a, '/', b))" if name == "count" else f"{name}({'x, y'[: 3 * wanted - 2]})"
        raise SqlError(
            f"{name} takes {wanted} argument{'s' * (wanted > 1)}, not {len(arguments)}", where=place, fix=form
        )
    if distinct and "DISTINCT" not in template:
        template = template.replace("({0}", "(DISTINCT {0}", 1)
    within_window = _is_of_window(node)
    if within_window and not order:
        # There the window has an order.
        template = _IN_ORDER_OF_VALUES.sub("", template)
    tree = filled(template, arguments)
    if order:
        _put_first(order, tree, arguments[0] if "DISTINCT" in template else None, place)
    return tree if within_window or name not in _OF_VALUES else _of_values(name, tree, map(argument, size), place)


def _as_members(given: Sequence[exp.Expr]) -> list[exp.Expr]:
    """Of an element, or of a name and its value, the JSON."""
    return [*map(_member_name, given[:-1]), *map(_member_value, given[-1:])]


def _member_name(name: exp.Expr) -> exp.Expr:
    """The name of a member in its quotes."""
    return exp.Anonymous(this="to_jsonb", expressions=[exp.cast(name, "varchar")])


def _member_value(value: exp.Expr) -> exp.Expr:
    """A value as JSON, of which NULL is null."""
    document = exp.Anonymous(this="to_jsonb", expressions=[value])
    return exp.Anonymous(this="coalesce", expressions=[document, exp.cast(exp.Literal.string("null"), "jsonb")])


def _refuse_beside_groups(name: str, distinct: bool, node: exp.Expr, place: str) -> None:
    """What is made of several calls is of the rows of a group: neither of a set of them nor of a window."""
    if (name.startswith(_REGRESSION) or name in DOCUMENTS) and (distinct or _is_of_window(node)):
        form = {"jsonb_agg": "x", "jsonb_object_agg": "name, x"}.get(name, "y, x")
        raise Unsupported(
            f"{name} takes neither DISTINCT nor OVER", where=place, fix=f"SELECT k, {name}({form}) FROM .. GROUP BY k"
        )


def _is_of_window(node: exp.Expr) -> bool:
    """Whether it is what a window computes, rather than an aggregate of a group that stands in its ORDER BY."""
    while isinstance(node.parent, exp.Filter):
        node = node.parent
    return isinstance(node.parent, exp.Window) and node.arg_key == "this"


def _size(name: str, given: list[exp.Expr], node: exp.Expr) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """The arguments without how many values are asked for, which ``top_k(x, 3)`` and ``top_k(3)(x)`` say."""
    if name not in _OF_VALUES:
        return given, []
    said = [one for one in node.expressions if isinstance(one, exp.Expr)] if isinstance(node, _LEVELLED_CALLS) else []
    return given[:1], [*said, *given[1:]][:1]


def _of_values(name: str, values: exp.Expr, parameters: Iterator[exp.Expr], place: str) -> exp.Expr:
    """What is made of the array of a group's values: of none it is empty, as ClickHouse has it."""
    size = next(parameters, None)
    there = filled("coalesce({0}, [])", [values])
    if size is None and name not in _ASK_HOW_MANY:
        return there
    if not isinstance(size, exp.Literal) or not str(size.this).isdecimal():
        raise SqlError(f"{name}() takes a number that is written out", where=place, fix=f"{name}(x, 3)")
    template = _OF_VALUES[name] if name in _ASK_HOW_MANY else "list_slice({0}, 1, {1})"
    made = filled(template, [there, exp.Literal.number(str(size.this))])
    # Of an array without values there is no histogram.
    return filled("coalesce({0}, [])", [made]) if name == "top_k" else made


_IN_ORDER_OF_VALUES = re.compile(r" ORDER BY [^)]*")


def _put_first(order: list[exp.Ordered], tree: exp.Expr, only: exp.Expr | None, place: str) -> None:
    """Let the terms of ``order`` go before the order of the values, where the aggregate has one. A set can have none
    but that of its values, ``only``.
    """
    if only is not None and any(term.this != only for term in order):
        raise SqlError(
            "DISTINCT values have no order but their own",
            where=place,
            fix="array_agg(DISTINCT x ORDER BY x), or array_agg(x ORDER BY y) without DISTINCT",
        )
    own = tree.find(exp.Order)
    if own is None:
        if isinstance(tree, exp.First | exp.Last):
            # The first of a set is the first of all values.
            value = tree.this if only is None else only.copy()
            ties = exp.Ordered(this=value.copy(), nulls_first=False)
            tree.set("this", exp.Order(this=value, expressions=[*order, ties]))
        return
    own.set("expressions", [*order, *own.expressions] if only is None else order)


def _levelled(name: str, given: list[exp.Expr], node: exp.Expr, argument: Part) -> exp.Expr:
    """A quantile: of what ``quantile(0.9)(x)`` has in its first brackets, or ``quantile(x, 0.9)`` behind x; of
    ``quantiles(0.5, 0.9)(x)`` all of it, as an array.
    """
    said = list(node.expressions if isinstance(node, _LEVELLED_CALLS) else given[1:])
    levels = [argument(one) for one in (said if name == "quantiles" else said[:1])] or [exp.Literal.number("0.5")]
    level = exp.Array(expressions=[one.copy() for one in levels]) if name == "quantiles" else levels[0]
    return filled(f"{_LEVELLED[name]}({{0}}, {{1}})", [*map(argument, given[:1]), level])


def result_type(tree: exp.Expr, schema: pa.Schema, place: str, rules: Rules) -> pa.DataType | None:
    """The type of an aggregate of the engine that streams have; None for others."""
    inner = tree.this if isinstance(tree, exp.Filter) else tree
    if isinstance(inner, exp.Count):
        return pa.int64()
    if type(inner) not in FOLDS:
        return None
    return call_types(call_of(tree, place), schema, place, rules)[1]


Aggregated = Callable[[exp.Expr, pa.DataType | None, str, str], exp.Expr]
"""What becomes of a call, of its type where that is known, of its name as it is written, in its place."""


def extreme_of_all(node: exp.Expr, call: exp.Expr) -> exp.Expr | None:
    """``min``, ``max`` or ``any`` of arrays or rows, which no fold has an order for, from all of them: the ``call`` of
    ``node``. None for others, and for windows.
    """
    name = aggregate_name(node.this if isinstance(node, exp.Filter) else node)
    order = {"min": "ASC", "any": "ASC", "any_value": "ASC", "max": "DESC"}.get(name)
    inner = call.this if isinstance(call, exp.Filter) else call
    if order is None or not isinstance(inner, exp.Min | exp.Max) or _is_of_window(node):
        return None
    value = inner.this.expressions[0] if isinstance(inner.this, exp.Distinct) else inner.this
    sorted_values = f"array_agg({{0}} ORDER BY {{0}} {order}) FILTER (WHERE {{0}} IS NOT NULL)"
    made = filled(f"list_extract({sorted_values}, 1)", [value])
    return filtered(made, call.expression.this) if isinstance(call, exp.Filter) else made


def as_it_is(tree: exp.Expr, kind: pa.DataType | None, name: str, place: str) -> exp.Expr:
    """The call unchanged: also within a window function, which is then changed as a whole."""
    return tree


def of_stream(tree: exp.Expr, kind: pa.DataType | None, name: str, place: str) -> exp.Expr:
    """Of an aggregate over groups of a stream: the operator computes it. Raises Unsupported for what hangs on the order
    in which rows come: it is another after a restart.
    """
    call = tree.this if isinstance(tree, exp.Filter) else tree
    if isinstance(call, exp.First | exp.Last) and not isinstance(call.this, exp.Order):
        extreme = "arg_min" if name in _EARLIEST else "arg_max"
        raise Unsupported(
            f"the aggregate {name} over streams depends on the order in which rows come, which a replay may change",
            where=place,
            fix=f"{name}(x ORDER BY t); or {extreme}(x, t), the value of the row with the "
            f"{'least' if name in _EARLIEST else 'greatest'} t; "
            f"or aggregate the content of a view: SELECT {name}(..) FROM table(view) GROUP BY ..",
        )
    return tree


def exact(tree: exp.Expr, kind: pa.DataType | None, name: str, place: str) -> exp.Expr:
    """Of an aggregate that DuckDB computes: its sums have a type of their own, and what does not fit ours is NULL."""
    inner = tree
    while isinstance(inner, exp.Filter | exp.Window):
        inner = inner.this
    if isinstance(inner, exp.Avg):
        # The engine adds doubles up: what integers and decimals lose by that can be more than their mean.
        total, count = _instead_of_avg(tree, exp.Sum), _instead_of_avg(tree, exp.Count)
        return filled("CAST({0} AS DOUBLE) / nullif({1}, 0)", [total, count])
    if not isinstance(inner, exp.Sum) or kind is None or pa.types.is_floating(kind):
        return tree
    return filled(f"TRY_CAST({{0}} AS {type_name(kind)})", [tree])


def _instead_of_avg(tree: exp.Expr, aggregate: type[exp.AggFunc]) -> exp.Expr:
    return tree.copy().transform(lambda node: aggregate(this=node.this) if isinstance(node, exp.Avg) else node)
