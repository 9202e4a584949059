"""Conditions and NULL: choices, comparisons, connectives."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.functions.registry import Build, Registry, Unfit
from dovetail.sql.functions.typed import Typed, bracketed, filled

_COMPARISONS = (
    ("equals", "=", "equal"),
    ("not_equals", "<>", "not equal"),
    ("less", "<", "less"),
    ("less_or_equals", "<=", "less or equal"),
    ("greater", ">", "greater"),
    ("greater_or_equals", ">=", "greater or equal"),
)


def condition(value: Typed) -> exp.Expr:
    """A truth value; a number is true where it is not 0."""
    if value.is_boolean or value.is_null:
        return bracketed(value.tree)
    if value.is_number:
        return filled("({0} <> 0)", [value.tree])
    raise Unfit(f"takes a condition, not a {value.family}")


def _multi_if(arguments: Sequence[Typed]) -> exp.Expr:
    """condition, value, condition, value, .., otherwise"""
    if len(arguments) % 2 == 0:
        raise Unfit("takes pairs of a condition and a value, and a value for all others")
    case = exp.Case()
    for holds, value in zip(arguments[:-1:2], arguments[1::2], strict=True):
        case.when(condition(holds).copy(), value.tree.copy(), copy=False)
    return exp.Paren(this=case.else_(arguments[-1].tree.copy(), copy=False))


def _connected(kind: type[exp.Connector]) -> Build:
    def build(arguments: Sequence[Typed]) -> exp.Expr:
        tree = condition(arguments[0])
        for argument in arguments[1:]:
            tree = kind(this=tree, expression=condition(argument))
        return exp.Paren(this=tree)

    return build


def _not(arguments: Sequence[Typed]) -> exp.Expr:
    return exp.Paren(this=exp.Not(this=condition(arguments[0])))


def _xor(arguments: Sequence[Typed]) -> exp.Expr:
    tree = condition(arguments[0])
    for argument in arguments[1:]:
        tree = exp.Paren(this=exp.NEQ(this=tree, expression=condition(argument)))
    return tree


def _transform(arguments: Sequence[Typed]) -> exp.Expr:
    """The value of ``to`` at the place where ``from`` holds x."""
    value, known, values = arguments[0], arguments[1], arguments[2]
    other = arguments[3] if len(arguments) == 4 else value
    return filled(
        "CASE WHEN list_contains({1}, {0}) THEN {2}[list_position({1}, {0})] ELSE {3} END",
        [value.tree, known.tree, values.tree, other.tree],
    )


def register(registry: Registry) -> None:
    add = partial(registry.add, group="conditions")
    chosen = "then where the condition holds, else where it does not or is NULL"
    add("if(condition, then, else)", chosen, _multi_if, arity=(3, 3))
    add(
        "multi_if(condition, value, .., else)",
        "the value of the first condition that holds",
        _multi_if,
        arity=(3, None),
    )
    add("coalesce(a, ..)", "the first that is not NULL", "coalesce({*})")
    add("if_null(a, b)", "b where a is NULL", "coalesce({0}, {1})")
    add("null_if(a, b)", "NULL where they are equal", "nullif({0}, {1})", aliases="nullif")
    add("is_null(a)", "whether a is NULL", "({0} IS NULL)")
    add("is_not_null(a)", "whether a is not NULL", "({0} IS NOT NULL)")
    add("is_zero_or_null(a)", "whether a is 0 or NULL", "({0} IS NULL OR {0} = 0)")
    add("assume_not_null(a)", "a", "{0}")
    add("to_nullable(a)", "a", "{0}")
    add("zero_if_null(a)", "0 where a is NULL", "coalesce({0}, 0)")
    for name, sign, meaning in _COMPARISONS:
        add(f"{name}(a, b)", f"whether a is {meaning}: a {sign} b", f"({{0}} {sign} {{1}})")
    distinct = "whether they differ, NULL being a value like any other"
    add("is_distinct_from(a, b)", distinct, "({0} IS DISTINCT FROM {1})")
    same = "whether they are the same, NULL being a value like any other"
    add("is_not_distinct_from(a, b)", same, "({0} IS NOT DISTINCT FROM {1})")
    add("and(a, b, ..)", "whether all hold", _connected(exp.And), pa.bool_(), arity=(2, None))
    add("or(a, b, ..)", "whether one holds", _connected(exp.Or), pa.bool_(), arity=(2, None))
    add("xor(a, b, ..)", "whether an odd number of them holds", _xor, pa.bool_(), arity=(2, None))
    add("not(a)", "whether a does not hold", _not, pa.bool_(), arity=(1, 1))
    placed = "the element of to where from has x; else, or x, where it has none"
    add("transform(x, from, to[, else])", placed, _transform, arity=(3, 4))
