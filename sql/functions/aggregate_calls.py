"""Aggregate functions of both dialects: from a call as it is written to one of the engine.

Where the result depends on the order of rows, it is that of their values, so that it is the same however they come:
an array is sorted, and of equal ones the least is taken. ORDER BY within the call goes before that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa
from sqlglot import exp

from changelog.errors import SqlError, UnknownName, Unsupported
from changelog.suggest import nearest
from sql.expressions.aggregate_functions import FOLDS, call_of, call_types, outermost
from sql.expressions.engine import type_name
from sql.functions.typed import filled
from sql.syntax.calls import registered_name
from sql.syntax.rules import Rules

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
    "group_array": "array_agg({0} ORDER BY {0}) FILTER (WHERE {0} IS NOT NULL)",
    "group_uniq_array": "array_agg(DISTINCT {0} ORDER BY {0}) FILTER (WHERE {0} IS NOT NULL)",
    "array_agg": "array_agg({0} ORDER BY {0})",
    "string_agg": "string_agg({0}, {1} ORDER BY {0})",
    "group_concat": "string_agg({0}, {1} ORDER BY {0})",
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
    "mode": "mode({0} ORDER BY {0})",
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
    "p90": "quantile_cont({0}, 0.9)",
    "p95": "quantile_cont({0}, 0.95)",
    "p99": "quantile_cont({0}, 0.99)",
}
_LEVELLED = {"quantile": "quantile_cont", "quantile_exact": "quantile_disc", "quantiles": "quantile_cont"}
"""Aggregates with a level before their argument: ``quantile(0.9)(x)``."""
_LEVELLED_CALLS = (exp.ParameterizedAgg, exp.CombinedParameterizedAgg)
_IN_ORDER = {
    "percentile_cont": "quantile_cont({0}, {1})",
    "percentile_disc": "quantile_disc({0}, {1})",
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
}
"""sqlglot's names of functions that the dialects spell otherwise."""

_EARLIEST = frozenset({"first", "earliest", "first_value"})

Part = Callable[[exp.Expr], exp.Expr]
"""How a part of a call is translated."""


def aggregate_names() -> tuple[str, ...]:
    return (*_TEMPLATES, "count_if", *_LEVELLED)


def aggregate_name(node: exp.Expr) -> str:
    """The name of the aggregate, or the function of windows, that ``node`` calls; '' for what is none."""
    name = registered_name(node)
    name = _SPELLED.get(name, name)
    known = isinstance(node, exp.AggFunc) or name in _TEMPLATES or name in _LEVELLED or name in _OF_WINDOWS
    conditional = name.endswith("_if") and name.removesuffix("_if") in _TEMPLATES
    return name if known or conditional else ""


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is a call of an aggregate by itself: its FILTER, where it has one, stands around it."""
    return isinstance(node, exp.Expr) and bool(aggregate_name(node))


def aggregates_in(expression: exp.Expr) -> Iterator[exp.Expr]:
    """The aggregates of an expression, each with its FILTER; those of subqueries and window functions apart."""
    return outermost(expression, is_aggregate_call)


def is_aggregate_call(node: exp.Expr) -> bool:
    """Whether a node is an aggregate, with its FILTER or WITHIN GROUP where it has one."""
    return is_aggregate(node.this if isinstance(node, exp.Filter | exp.WithinGroup) else node)


def aggregate_tree(node: exp.Expr, argument: Part, condition: Part, place: str) -> exp.Expr:
    """The engine's call, its parts translated by ``argument`` and ``condition``. Raises UnknownName."""
    if isinstance(node, exp.Filter):
        return filtered(aggregate_tree(node.this, argument, condition, place), condition(node.expression.this))
    if isinstance(node, exp.WithinGroup):
        return _within_group(node, argument, place)
    name, (given, order, distinct) = aggregate_name(node), _parts(node)
    order = [_term(one, argument) for one in order]
    if name in _OF_WINDOWS:
        return exp.Anonymous(this=name, expressions=[argument(one) for one in given])
    if name.endswith("_if") and name not in _TEMPLATES:
        if not given:
            raise SqlError(f"{name}() takes a condition", where=place, fix=f"{name}(x, condition)")
        holds, given, name = condition(given[-1]), given[:-1], name.removesuffix("_if")
        return filtered(_built(name, [argument(one) for one in given], distinct, order, node, place), holds)
    return _built(name, [argument(one) for one in given], distinct, order, node, place)


def _within_group(node: exp.WithinGroup, argument: Part, place: str) -> exp.Expr:
    """``percentile_cont(0.5) WITHIN GROUP (ORDER BY x)``"""
    name = aggregate_name(node.this)
    wanted = _IN_ORDER.get(name)
    ordered = node.expression.expressions
    if wanted is None or len(ordered) != 1 or (name != "mode" and node.this.this is None):
        raise SqlError(
            f"{name}() has no WITHIN GROUP of this form",
            where=place,
            fix="percentile_cont(0.5) WITHIN GROUP (ORDER BY x)",
        )
    value = argument(ordered[0].this)
    if name == "mode":
        return filled(wanted, [value])
    level = node.this.this
    if ordered[0].args.get("desc"):
        level = exp.Sub(this=exp.Literal.number(1), expression=level.copy())
    return filled(wanted, [value, level])


def filtered(tree: exp.Expr, condition: exp.Expr) -> exp.Expr:
    """An aggregate over the rows for which ``condition`` holds, besides the FILTER that it has."""
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
        others = [node.args.get(name) for name in ("expression", "separator", "offset", "default")]
        given = [one for one in (node.args.get("this"), *node.expressions, *others) if isinstance(one, exp.Expr)]
    order = [term for one in given if isinstance(one, exp.Order) for term in one.expressions]
    given = [one.this if isinstance(one, exp.Order) else one for one in given]
    distinct = any(isinstance(one, exp.Distinct) for one in given)
    spread = [one.expressions if isinstance(one, exp.Distinct) else [one] for one in given]
    return [one for several in spread for one in several], order, distinct


def _term(term: exp.Ordered, argument: Part) -> exp.Ordered:
    made = term.copy()
    made.set("this", argument(term.this))
    # Where it is not said, that of the dialect: the parser has found it out.
    made.set("nulls_first", bool(term.args.get("nulls_first")))
    return made


def _built(
    name: str, arguments: list[exp.Expr], distinct: bool, order: list[exp.Ordered], node: exp.Expr, place: str
) -> exp.Expr:
    if name == "count" and (not arguments or isinstance(arguments[0], exp.Star)):
        return exp.Count(this=exp.Star())
    if len(arguments) > 1 and ((name == "count" and distinct) or _TEMPLATES.get(name) == _TEMPLATES["uniq"]):
        return exp.Count(this=exp.Distinct(expressions=arguments))
    if name in _LEVELLED:
        return filled(f"{_LEVELLED[name]}({{0}}, {{1}})", [*arguments[:1], _level(name, node)])
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
    if node.find_ancestor(exp.Window) is not None:
        # There the window has an order.
        template = _IN_ORDER_OF_VALUES.sub("", template)
    tree = filled(template, arguments)
    if order:
        _put_first(order, tree, arguments[0] if "DISTINCT" in template else None, place)
    return tree


_IN_ORDER_OF_VALUES = re.compile(r" ORDER BY [^)]*")


def _put_first(order: list[exp.Ordered], tree: exp.Expr, only: exp.Expr | None, place: str) -> None:
    """Let the terms of ``order`` go before the order of the values, where the aggregate has one. A set can have none
    but that of its values, ``only``.
    """
    own = tree.find(exp.Order)
    if own is None:
        return
    if only is not None and any(term.this != only for term in order):
        raise SqlError(
            "DISTINCT values have no order but their own",
            where=place,
            fix="array_agg(DISTINCT x ORDER BY x), or array_agg(x ORDER BY y) without DISTINCT",
        )
    own.set("expressions", [*order, *own.expressions] if only is None else order)


def _level(name: str, node: exp.Expr) -> exp.Expr:
    """What ``quantile(0.9)(x)`` has in its first brackets; of ``quantiles(0.5, 0.9)(x)`` all of it, as an array."""
    given = node.expressions if isinstance(node, _LEVELLED_CALLS) else [node.args.get("quantile")]
    levels = [one for one in given if isinstance(one, exp.Expr)] or [exp.Literal.number("0.5")]
    return exp.Array(expressions=[one.copy() for one in levels]) if name == "quantiles" else levels[0]


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


def as_it_is(tree: exp.Expr, kind: pa.DataType | None, name: str, place: str) -> exp.Expr:
    """The call unchanged: also within a window function, which is then changed as a whole."""
    return tree


def of_stream(tree: exp.Expr, kind: pa.DataType | None, name: str, place: str) -> exp.Expr:
    """Of an aggregate over groups of a stream: the operator computes it. Raises Unsupported for what hangs on the order
    in which rows come: it is another after a restart.
    """
    if isinstance(tree.this if isinstance(tree, exp.Filter) else tree, exp.First | exp.Last):
        extreme = "arg_min" if name in _EARLIEST else "arg_max"
        raise Unsupported(
            f"the aggregate {name} over streams hangs on the order in which rows come, which a replay may change",
            where=place,
            fix=f"{extreme}(x, t), the value of the row with the {'least' if name in _EARLIEST else 'greatest'} t; "
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
