"""Expressions with their names looked up and their calls translated: from the user's tree to the engine's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.changelog.schema import SEQUENCE, TIME
from dovetail.changelog.wording import counted
from dovetail.sql.bind.scope import Scope, place_of
from dovetail.sql.bind.subquery_advice import in_place_of
from dovetail.sql.bind.written.untranslated import refuse_untranslated
from dovetail.sql.expressions.dict_functions import dict_function
from dovetail.sql.expressions.expression import column_named
from dovetail.sql.functions.aggregate_calls import by_time, exact, is_aggregate, of_stream
from dovetail.sql.functions.environment import Environment
from dovetail.sql.functions.forms import is_grouping
from dovetail.sql.functions.kept_values import kept
from dovetail.sql.functions.translate import Special, Translator
from dovetail.sql.functions.typed import Typed, bracketed
from dovetail.sql.plan.column_names import DELTA_COLUMN
from dovetail.sql.syntax.calls import TAKES_UNIT, function_name, registered_name
from dovetail.sql.syntax.dialect import DURATION, DURATION_UNITS
from dovetail.sql.syntax.intervals import milliseconds, unit_ms

_BARE_CALLS = frozenset({"current_timestamp", "current_date", "current_time", "localtimestamp", "localtime"})
"""Calls that are written without brackets."""
_OVER_GROUPS = ("SELECT", "HAVING", "ORDER BY", "QUALIFY")
"""The clauses in which aggregates stand."""
_OVER_PARTITIONS = ("SELECT", "QUALIFY", "ORDER BY")
"""The clauses in which window functions stand."""


@dataclass(frozen=True)
class Within:
    """How expressions are read in one place of a query.

    special  calls that mean something of their own there
    bounded  the query has all its rows: aggregates are computed by the engine
    """

    special: Mapping[str, Special] = field(default_factory=dict)
    bounded: bool = False

    def translator(self, scope: Scope, place: str) -> Translator:
        aggregated = exact if self.bounded else of_stream
        environment = Environment(scope.types, place, scope.dialect.rules, scope.forms)
        return Translator(scope.dialect, environment, self.special, aggregated, at_once=self.bounded)


STREAM = Within()


class Expressions(Protocol):
    """How a query reads its expressions: as engine's trees, over the internal columns of a scope.

    bounded  it has all its rows
    """

    @property
    def bounded(self) -> bool: ...

    def value(self, expression: exp.Expr, scope: Scope, clause: str) -> exp.Expr: ...

    def condition(self, expression: exp.Expr, scope: Scope, clause: str) -> exp.Expr:
        """As ``value``, of what is true or false."""
        ...

    def on(self, term: exp.Expr, left: Scope, right: Scope) -> exp.Expr:
        """As ``condition``, of a term of ON."""
        ...


def resolved(expression: exp.Expr, scope: Scope, clause: str) -> exp.Expr:
    """``expression`` of a query over streams, as the engine's tree over the internal columns of ``scope``."""
    _refuse(expression, clause)
    return translated(typed(expression, scope, clause).tree, expression, clause)


def resolved_condition(expression: exp.Expr, scope: Scope, clause: str) -> exp.Expr:
    """As ``resolved``, for what is true or false."""
    _refuse(expression, clause)
    return translated(condition(expression, scope, clause), expression, clause)


def translated(tree: exp.Expr, written: exp.Expr, clause: str) -> exp.Expr:
    """``tree``, if all of ``written`` was translated. Raises Unsupported."""
    refuse_untranslated(tree, place_of(written, clause))
    return tree


def typed(expression: exp.Expr, scope: Scope, clause: str, within: Within = STREAM) -> Typed:
    """``expression`` over the internal columns of ``scope``, with its type."""
    tree = _with_internal_names(_by_event_time(expression, scope), scope, clause)
    translator = within.translator(scope, place_of(expression, clause))
    return kept(translator.whole(tree, translator), scope.forms, scope.dialect.rules)


def condition(expression: exp.Expr, scope: Scope, clause: str, within: Within = STREAM) -> exp.Expr:
    tree = _with_internal_names(_by_event_time(expression, scope), scope, clause)
    translator = within.translator(scope, place_of(expression, clause))
    return translator.whole(tree, translator.condition)


def resolved_on(term: exp.Expr, scope: Scope, left: Scope, right: Scope) -> exp.Expr:
    """A term of ON: as ``resolved``, but ``date_diff(unit, a, b)`` is a - b at the columns' own precision."""
    _refuse(term, "JOIN .. ON")
    return translated(typed_on(term, scope, left, right).tree, term, "JOIN .. ON")


def typed_on(term: exp.Expr, scope: Scope, left: Scope, right: Scope, within: Within = STREAM) -> Typed:
    place = place_of(term, "JOIN .. ON")
    special = {
        **within.special,
        "date_diff": lambda translate, node: _difference(translate, node, place),
        "date_diff_within": lambda translate, node: _within(translate, node, place),
    }
    return typed(_with_times(term, left, right), scope, "JOIN .. ON", replace(within, special=special))


def _by_event_time(expression: exp.Expr, scope: Scope) -> exp.Expr:
    """``latest(x)`` and its kin by the event time of the stream of x; as they are where there is no one time."""

    def ordered(node: exp.Expr) -> exp.Expr:
        if not is_aggregate(node):
            return node
        named = {scope.named_by(column) for column in node.find_all(exp.Column)}
        times = [column for column in scope.columns if column.name == TIME and not (named - {column.table})]
        if len(times) != 1:
            return node
        time = exp.column(exp.to_identifier(TIME, quoted=True), table=exp.to_identifier(times[0].table, quoted=True))
        return by_time(node, time) or node

    return expression.copy().transform(ordered)


def _with_internal_names(expression: exp.Expr, scope: Scope, clause: str) -> exp.Expr:
    def internal(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        if isinstance(node.this, exp.Star):
            return _whole_row(node, scope, clause) if isinstance(node.parent, exp.Anonymous | exp.Order) else node
        duration = DURATION.fullmatch(node.name)
        if duration is not None and not node.table and not scope.has(node.name):
            count, unit = duration.groups()
            return exp.Interval(this=exp.Literal.string(count), unit=exp.var(DURATION_UNITS[unit]))
        if node.name.casefold() in _BARE_CALLS and not node.table and not scope.knows(node):
            return exp.Anonymous(this=node.name.casefold())
        if node.name == DELTA_COLUMN and not scope.has(DELTA_COLUMN):
            raise Unsupported(
                "_tp_delta is the sign of a change, not a column to compute with",
                where=place_of(node, clause),
                fix="select it as it is: SELECT *, _tp_delta",
            )
        if node.table and not scope.is_table(node.table) and scope.has(node.table):
            whole = exp.Column(this=node.args["table"].copy(), table=node.args.get("db"))
            return exp.Dot(this=named(whole), expression=node.this.copy())
        if isinstance(node.parent, exp.Anonymous) and _is_unit(node, scope):
            return node
        return named(node)

    def named(node: exp.Column) -> exp.Expr:
        return column_named(scope.find(node, clause).internal)

    return expression.copy().transform(internal)


def _whole_row(star: exp.Column, scope: Scope, clause: str) -> exp.Expr:
    """``t.*`` as the argument of a function: a row of the columns of t."""
    columns = [one for one in scope.of(star.table) if one.starred or one.name not in (TIME, SEQUENCE)]
    if not columns:
        scope.find(exp.column("*", table=star.table), clause)
    fields = [(exp.to_identifier(one.name, quoted=True), column_named(one.internal)) for one in columns]
    return exp.Struct(expressions=[exp.PropertyEQ(this=name, expression=value) for name, value in fields])


def _is_unit(node: exp.Column, scope: Scope) -> bool:
    """Whether the first argument of ``date_add(day, 1, t)`` is the name of a unit."""
    call = node.parent
    if not isinstance(call, exp.Anonymous) or node.table or scope.has(node.name):
        return False
    return call.expressions[0] is node and registered_name(call) in TAKES_UNIT


_IN_HAVING = (
    "write a condition on it in HAVING, or aggregate in a subquery: "
    "JOIN (SELECT k, count() AS n FROM t GROUP BY k) AS g"
)
_AGGREGATE_ELSEWHERE = {
    "GROUP BY": "GROUP BY the other columns; or, of its values, "
    "SELECT n, count() FROM (SELECT k, count() AS n FROM t GROUP BY k) AS g GROUP BY n"
}


def _refuse(expression: exp.Expr, clause: str) -> None:
    """What is no part of an expression over a stream."""
    for node in expression.walk():
        if dict_function(node):
            raise Unsupported(
                f"{dict_function(node)} is allowed in SELECT and WHERE only",
                where=place_of(node, clause),
                fix="join the dictionary itself: LEFT JOIN d ON x.key = d.key",
            )
        if isinstance(node, exp.Subquery | exp.Select | exp.Exists):
            raise Unsupported(
                "a subquery in this place is not supported",
                where=place_of(node, clause),
                fix=in_place_of(node),
            )
    refuse_misplaced(expression, clause)


def refuse_misplaced(expression: exp.Expr, clause: str) -> None:
    """Aggregates and window functions where there are no groups, and no partitions, yet."""
    for node in expression.walk():
        where = place_of(node, clause) if isinstance(node, exp.Func | exp.Query | exp.Window) else ""
        if isinstance(node, exp.Window) and clause not in _OVER_PARTITIONS:
            raise Unsupported(
                f"a window function is not allowed in {clause}",
                where=where,
                fix="QUALIFY row_number() OVER (..) <= 3 in the place of WHERE; or compute it in a subquery: FROM "
                "(SELECT *, row_number() OVER (..) AS n FROM l) AS x WHERE n <= 3",
            )
        if is_grouping(node) and clause not in _OVER_GROUPS:
            raise Unsupported(
                f"grouping() is not allowed in {clause}",
                where=where,
                fix="ask for it in HAVING: SELECT k, count() .. GROUP BY ROLLUP (k) HAVING grouping(k) = 0",
            )
        if is_aggregate(node) and clause not in _OVER_GROUPS:
            raise Unsupported(
                f"an aggregate ({function_name(node)}) is not allowed in {clause}",
                where=where,
                fix=_AGGREGATE_ELSEWHERE.get(clause, _IN_HAVING),
            )


def _with_times(term: exp.Expr, left: Scope, right: Scope) -> exp.Expr:
    """``date_diff_within(2m)`` compares ``_tp_time`` of both sides."""

    def add(node: exp.Expr) -> exp.Expr:
        if function_name(node) == "date_diff_within" and len(node.expressions) == 1:
            return exp.Anonymous(this=node.this, expressions=[*node.expressions, *map(_time_of, (left, right))])
        return node

    return term.copy().transform(add)


def _time_of(side: Scope) -> exp.Column:
    found = next((column for column in side.columns if column.name == TIME), None)
    if found is None:
        raise SqlError(
            "date_diff_within without columns compares _tp_time, which one side does not have",
            where="in JOIN .. ON",
            fix="name the columns: date_diff_within(2m, l.time, r.time)",
        )
    return exp.column(TIME, table=found.table)


def _difference(translate: Translator, node: exp.Expr, place: str) -> Typed:
    """a - b in ``unit``, of ``date_diff(unit, a, b)``."""
    if len(node.expressions) != 3:
        raise SqlError(
            f"date_diff in ON takes a unit and two columns, not {counted(len(node.expressions), 'argument')}",
            where=place,
            fix="date_diff('second', l.time, r.time)",
        )
    translate.note_read(node.expressions[0])
    unit = str(node.expressions[0].name)
    scale = unit_ms(unit)
    if scale is None:
        raise Unsupported(f"date_diff in ON with {unit}, which has no fixed length", where=place, fix="use days")
    first, second = (_epoch(translate(one)) for one in node.expressions[1:])
    micros = exp.Paren(this=exp.Sub(this=first, expression=second))
    quotient = exp.Div(this=micros, expression=exp.Literal.number(f"{float(scale * 1000)}"))
    return translate.environment.known(exp.Paren(this=quotient), pa.float64())


def _epoch(value: Typed) -> exp.Expr:
    return exp.Anonymous(this="epoch_us", expressions=[value.tree.copy()])


def _within(translate: Translator, node: exp.Expr, place: str) -> Typed:
    """``date_diff_within(d, a, b)`` or ``(a, b, d)``: at most d apart.

    Over whole numbers d is one too, or a length of time, which counts in seconds.
    """
    arguments = list(node.expressions)
    lengths = [_length(argument) for argument in arguments]
    given = [length for length in lengths if length is not None]
    columns = [translate(one) for one, length in zip(arguments, lengths, strict=True) if length is None]
    for one, length in zip(arguments, lengths, strict=True):
        if length is not None:
            translate.note_read(one)
    if len(given) != 1 or len(columns) != 2 or given[0] <= 0:
        raise SqlError(
            "date_diff_within takes one positive interval and two columns",
            where=place,
            fix="date_diff_within(10s, l.time, r.time)",
        )
    by_number = not any(isinstance(argument.unnest(), exp.Interval) for argument in arguments)
    first, second = columns
    if first.is_integer and second.is_integer:
        return _between(translate, columns, given[0] if by_number else given[0] / 1000)
    if by_number:
        raise SqlError(
            "date_diff_within takes a number over whole numbers, and a length of time over times",
            where=place,
            fix="date_diff_within(10s, l.time, r.time)",
        )
    epochs = [translate.environment.known(_epoch(column), pa.int64()) for column in columns]
    return _between(translate, epochs, given[0] * 1000)


def _length(argument: exp.Expr) -> Decimal | None:
    """A length of time in milliseconds, or a whole number."""
    if isinstance(argument, exp.Literal) and not argument.is_string and str(argument.this).isdecimal():
        return Decimal(str(argument.this))
    return milliseconds(argument)


def _between(translate: Translator, sides: Sequence[Typed], bound: Decimal) -> Typed:
    first, second = (bracketed(side.tree) for side in sides)
    high = exp.Literal.number(f"{bound.normalize():f}")
    difference = exp.Paren(this=exp.Sub(this=first, expression=second))
    return translate.environment.known(
        exp.Between(this=difference, low=exp.Neg(this=high), high=high.copy()), pa.bool_()
    )
