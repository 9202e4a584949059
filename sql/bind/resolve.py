"""Expressions with their names looked up: from the user's tree to DuckDB SQL over internal columns."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pyarrow as pa
from sqlglot import exp

from changelog.errors import SqlError, Unsupported
from changelog.schema import TIME
from sql.bind.scope import Scope, place_of
from sql.expressions.dict_functions import dict_function
from sql.expressions.evaluate import types_of
from sql.expressions.functions import function_name, is_aggregate, refuse_volatile, to_duckdb
from sql.plan.column_names import DELTA_COLUMN
from sql.syntax.dialect import DURATION, DURATION_UNITS
from sql.syntax.intervals import milliseconds, unit_ms

_OVER_GROUPS = ("SELECT", "HAVING")
"""The clauses in which aggregates stand."""


def resolved(expression: exp.Expr, scope: Scope, clause: str) -> str:
    """``expression`` as DuckDB SQL over the internal columns of ``scope``."""
    return to_duckdb(_with_internal_names(expression, scope, clause))


def resolved_on(term: exp.Expr, scope: Scope, left: pa.Schema, right: pa.Schema) -> str:
    """A term of ON: as ``resolved``, but ``date_diff(unit, a, b)`` is a - b at the columns' own precision."""
    joined = pa.schema([*left, *right])
    place = place_of(term, "JOIN .. ON")
    tree = _with_internal_names(_with_times(term, scope, left, right), scope, "JOIN .. ON")

    def kind(column: exp.Expr) -> pa.DataType:
        return types_of(joined, [to_duckdb(column)], place)[0]

    def in_on(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.DateDiff):
            return _difference(node, place)
        if function_name(node) == "date_diff_within":
            return _within(node, kind, place)
        return node

    return to_duckdb(tree.transform(in_on))


def bounded_on(
    condition: exp.Expr, times: list[exp.Expr], kind: Callable[[exp.Expr], pa.DataType | None], place: str
) -> exp.Expr:
    """The condition of a join over ``table(x)``: the same meaning of date_diff and date_diff_within, names as they
    are. ``kind`` tells the type of an expression, as far as it is known.
    """

    def in_on(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.DateDiff):
            return _difference(node, place)
        if function_name(node) == "date_diff_within":
            columns = times if len(node.expressions) == 1 else []
            return _within(exp.Anonymous(this="w", expressions=[*node.expressions, *columns]), kind, place)
        return node

    return _with_durations(condition).transform(in_on)


def _with_durations(expression: exp.Expr) -> exp.Expr:
    def duration(node: exp.Expr) -> exp.Expr:
        found = DURATION.fullmatch(node.name) if isinstance(node, exp.Column) and not node.table else None
        if found is None:
            return node
        return exp.Interval(this=exp.Literal.string(found.group(1)), unit=exp.var(DURATION_UNITS[found.group(2)]))

    return expression.copy().transform(duration)


def _with_internal_names(expression: exp.Expr, scope: Scope, clause: str) -> exp.Expr:
    _refuse(expression, clause)

    def internal(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        duration = DURATION.fullmatch(node.name)
        if duration is not None and not node.table and not scope.has(node.name):
            count, unit = duration.groups()
            return exp.Interval(this=exp.Literal.string(count), unit=exp.var(DURATION_UNITS[unit]))
        if node.name == DELTA_COLUMN:
            raise Unsupported(
                "_tp_delta is the sign of a change, not a column to compute with",
                where=place_of(node, clause),
                fix="select it as it is: SELECT *, _tp_delta",
            )
        return exp.column(exp.to_identifier(scope.find(node, clause).internal, quoted=True))

    return expression.copy().transform(internal)


def _refuse(expression: exp.Expr, clause: str) -> None:
    refuse_volatile(expression, place_of(expression, clause))
    for node in expression.walk():
        if dict_function(node):
            raise Unsupported(
                f"{dict_function(node)} stands in SELECT or WHERE only",
                where=place_of(node, clause),
                fix="join the dictionary itself: LEFT JOIN d ON x.key = d.key",
            )
        where = place_of(node, clause) if isinstance(node, exp.Func | exp.Query | exp.Window) else ""
        if isinstance(node, exp.Window):
            raise Unsupported(
                "window functions are not supported in this release", where=where, fix="run it over table(x)"
            )
        if isinstance(node, exp.Subquery | exp.Select | exp.Exists):
            raise Unsupported(
                "a subquery in an expression is not supported in this release",
                where=place_of(node, clause),
                fix="join with the subquery, or with table(x)",
            )
        if is_aggregate(node) and clause not in _OVER_GROUPS:
            raise Unsupported(
                f"an aggregate ({function_name(node)}) does not stand in {clause}",
                where=where,
                fix="write a condition on it in HAVING, or aggregate in a subquery: JOIN (SELECT k, count() AS n "
                "FROM t GROUP BY k) AS g",
            )


def _with_times(term: exp.Expr, scope: Scope, left: pa.Schema, right: pa.Schema) -> exp.Expr:
    """``date_diff_within(2m)`` compares ``_tp_time`` of both sides."""

    def add(node: exp.Expr) -> exp.Expr:
        if function_name(node) == "date_diff_within" and len(node.expressions) == 1:
            times = [_time_of(scope, side) for side in (left, right)]
            return exp.Anonymous(this="date_diff_within", expressions=[*node.expressions, *times])
        return node

    return term.copy().transform(add)


def _time_of(scope: Scope, side: pa.Schema) -> exp.Column:
    found = next((column for column in scope.columns if column.name == TIME and column.internal in side.names), None)
    if found is None:
        raise SqlError(
            "date_diff_within without columns compares _tp_time, which one side does not have",
            where="in JOIN .. ON",
            fix="name the columns: date_diff_within(2m, l.time, r.time)",
        )
    return exp.column(TIME, table=found.table)


def _difference(node: exp.DateDiff, place: str) -> exp.Expr:
    """a - b in ``unit``; sqlglot keeps ``date_diff(unit, a, b)`` as this = b, expression = a."""
    unit = str(node.args["unit"].name)
    scale = unit_ms(unit)
    if scale is None:
        raise Unsupported(f"date_diff in ON with {unit}, which has no fixed length", where=place, fix="use days")
    micros = exp.Sub(this=_epoch(node.expression), expression=_epoch(node.this))
    return exp.Paren(this=exp.Div(this=exp.Paren(this=micros), expression=exp.Literal.number(f"{float(scale * 1000)}")))


def _epoch(column: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="epoch_us", expressions=[column.copy()])


def _within(node: exp.Expr, kind: Callable[[exp.Expr], pa.DataType | None], place: str) -> exp.Expr:
    """``date_diff_within(d, a, b)`` or ``(a, b, d)``: at most d apart; over integers d counts in seconds."""
    arguments = list(node.expressions)
    lengths = [milliseconds(argument) for argument in arguments]
    given = [length for length in lengths if length is not None]
    columns = [argument for argument, length in zip(arguments, lengths, strict=True) if length is None]
    if len(given) != 1 or len(columns) != 2 or given[0] <= 0:
        raise SqlError(
            "date_diff_within takes one positive interval and two columns",
            where=place,
            fix="date_diff_within(10s, l.time, r.time)",
        )
    kinds = [kind(column) for column in columns]
    if all(found is not None and pa.types.is_integer(found) for found in kinds):
        return _between(exp.Sub(this=columns[0].copy(), expression=columns[1].copy()), given[0] / 1000)
    return _between(exp.Sub(this=_epoch(columns[0]), expression=_epoch(columns[1])), given[0] * 1000)


def _between(difference: exp.Expr, bound: Decimal) -> exp.Expr:
    high = exp.Literal.number(f"{bound.normalize():f}")
    return exp.Between(this=exp.Paren(this=difference), low=exp.Neg(this=high), high=high.copy())
