"""Conditions and NULL: choices, comparisons, connectives."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa
from sqlglot import exp

from dovetail.sql.functions.arguments import checked, trees_of
from dovetail.sql.functions.registry import Build, Row, Table, Unfit
from dovetail.sql.functions.timeplus.comparable import expect_comparable, expect_one_type
from dovetail.sql.functions.typed import Typed, bracketed, filled


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
    expect_one_type([*arguments[1::2], arguments[-1]], "the choice")
    case = exp.Case()
    for holds, value in zip(arguments[:-1:2], arguments[1::2], strict=True):
        case.when(condition(holds).copy(), value.tree.copy(), copy=False)
    return exp.Paren(this=case.else_(arguments[-1].tree.copy(), copy=False))


def _first_known(arguments: Sequence[Typed]) -> exp.Expr:
    expect_one_type(arguments, "the choice")
    return filled("coalesce({*})", trees_of(arguments))


_compared = partial(checked, expect_comparable)


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


_PLACED = "CASE WHEN list_contains({1}, {0}) THEN {2}[list_position({1}, {0})] ELSE %s END"

FUNCTIONS: Table = (
    Row("if(condition, then, else)", "then where the condition holds, else where it does not or is NULL", _multi_if),
    Row("multi_if(condition, value, .., else)", "the value of the first condition that holds", _multi_if),
    Row("coalesce(a, ..)", "the first that is not NULL", _first_known),
    Row("if_null(a, b)", "b where a is NULL", _first_known),
    Row("null_if(a, b)", "NULL where they are equal", _compared("nullif({0}, {1})"), also="nullif"),
    Row("is_null(a)", "whether a is NULL", "({0} IS NULL)"),
    Row("is_not_null(a)", "whether a is not NULL", "({0} IS NOT NULL)"),
    Row("is_zero_or_null(a)", "whether a is 0 or NULL", "({0} IS NULL OR {0} = 0)"),
    Row("assume_not_null(a)", "a", "{0}"),
    Row("to_nullable(a)", "a", "{0}"),
    Row("zero_if_null(a)", "0 where a is NULL", "coalesce({0}, 0)"),
    Row("equals(a, b)", "whether a is equal: a = b", _compared("({0} = {1})")),
    Row("not_equals(a, b)", "whether a is not equal: a <> b", _compared("({0} <> {1})")),
    Row("less(a, b)", "whether a is less: a < b", _compared("({0} < {1})")),
    Row("less_or_equals(a, b)", "whether a is less or equal: a <= b", _compared("({0} <= {1})")),
    Row("greater(a, b)", "whether a is greater: a > b", _compared("({0} > {1})")),
    Row("greater_or_equals(a, b)", "whether a is greater or equal: a >= b", _compared("({0} >= {1})")),
    Row("is_distinct_from(a, b)", "whether they differ, NULL being a value like any other",
        _compared("({0} IS DISTINCT FROM {1})")),
    Row("is_not_distinct_from(a, b)", "whether they are the same, NULL being a value like any other",
        _compared("({0} IS NOT DISTINCT FROM {1})")),
    Row("and(a, b, ..)", "whether all hold", _connected(exp.And), pa.bool_()),
    Row("or(a, b, ..)", "whether one holds", _connected(exp.Or), pa.bool_()),
    Row("xor(a, b, ..)", "whether an odd number of them holds", _xor, pa.bool_()),
    Row("not(a)", "whether a does not hold", _not, pa.bool_()),
    Row("transform(x, from, to[, else])", "the element of to where from has x; else, or x, where it has none",
        (_PLACED % "{0}", _PLACED % "{3}")),
)  # fmt: skip
