"""Conditions on the clock: ``at > now() - INTERVAL '1 hour'`` in WHERE and HAVING of a streaming query.

**Definition.** At every moment the rows pass for which the condition holds then: they come and go as time passes, with
a retraction when they go.

The clock is a stream, ``dovetail_clock``, whose one row has the time. So a condition is one on a row that changes, and
a replay meets the same times again:

    WHERE   EXISTS (SELECT 1 FROM (SELECT max(now) - INTERVAL '1 hour' AS bound FROM dovetail_clock) WHERE at > bound)
    HAVING  max(at) > (SELECT max(now) - INTERVAL '1 hour' AS bound FROM dovetail_clock)

Of a comparison one side is a value of the clock and of constants, or becomes so: ``now() - at < INTERVAL '1 hour'``.
With ``=`` it is a join by this key, ``date_trunc('day', at) = date_trunc('day', now())``.

Source: the temporal filters of RisingWave and of Materialize.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from dovetail.sql.clock_table import CLOCK, TIME_OF_CLOCK
from dovetail.sql.expressions.predicates import conjuncts
from dovetail.sql.syntax.calls import function_name

_TIMES = ("now", "now64", "current_timestamp")
_DATES = ("current_date", "today")
_CLOCKS = (*_TIMES, *_DATES)
_MIRRORED: Mapping[type[exp.Expr], type[exp.Binary]] = {
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.EQ: exp.EQ,
}
_ALIAS, _BOUND = "clock", "__bound"
"""No column of the query around is called so."""


def of_rows(condition: exp.Expr) -> exp.Expr:
    """``condition``, that of WHERE, with its comparisons with the clock as questions to its table."""
    return _with(condition, _exists)


def of_groups(condition: exp.Expr) -> exp.Expr:
    """As ``of_rows``, for HAVING."""
    return _with(condition, _with_value)


def _with(condition: exp.Expr, made: Callable[[ClockComparison], exp.Expr]) -> exp.Expr:
    """Of those terms that AND joins. What is no such comparison stays as it is, and the call is refused where it is."""
    if not asks_clock(condition):
        return condition
    terms = [found for term in conjuncts(condition) for found in _ends_of(term)]
    asked = [(term, ClockComparison.of(term)) for term in terms]
    return exp.and_(*(term.copy() if found is None else made(found) for term, found in asked), copy=False)


@dataclass(frozen=True)
class ClockComparison:
    """``value <comparison> bound``: the value of a row, and one of the clock and of constants."""

    value: exp.Expr
    comparison: type[exp.Binary]
    bound: exp.Expr

    @staticmethod
    def of(term: exp.Expr) -> ClockComparison | None:
        """None where ``term`` is none, or does not ask the clock."""
        inner = term.unnest()
        if type(inner) not in _MIRRORED or not isinstance(inner, exp.Binary):
            return None
        left, right = inner.left.unnest(), inner.right.unnest()
        if asks_clock(left) == asks_clock(right):
            return None
        found = ClockComparison(left, type(inner), right)
        return (found if asks_clock(right) else found.turned()).apart()

    def turned(self) -> ClockComparison:
        return ClockComparison(self.bound, _MIRRORED[self.comparison], self.value)

    def apart(self) -> ClockComparison | None:
        """With nothing of the row in the bound; None where that cannot be."""
        if self.bound.find(exp.Column) is None:
            return self
        if not isinstance(self.bound, exp.Sub) or self.value.find(exp.Column) is not None:
            return None
        clock, subtracted = self.bound.left.unnest(), self.bound.right.unnest()
        if not asks_clock(clock) or clock.find(exp.Column) is not None:
            return None
        # INTERVAL '1 hour' > now() - at: at is what is compared.
        return ClockComparison(subtracted, self.comparison, exp.Sub(this=clock.copy(), expression=self.value.copy()))

    @property
    def of_clock(self) -> exp.Subquery:
        """``(SELECT bound FROM dovetail_clock)``, with the time of its row for each call."""
        value = self.bound.copy().transform(_read)
        item = exp.alias_(value, _BOUND, quoted=True)
        return exp.Subquery(this=exp.Select().select(item).from_(exp.to_table(CLOCK)))


def _exists(found: ClockComparison) -> exp.Expr:
    rows = found.of_clock
    rows.set("alias", exp.TableAlias(this=exp.to_identifier(_ALIAS)))
    bound = exp.column(_BOUND, table=_ALIAS, quoted=True)
    holds = found.comparison(this=found.value.copy(), expression=bound)
    return exp.Exists(this=exp.Select().select(exp.Literal.number(1)).from_(rows).where(holds))


def _with_value(found: ClockComparison) -> exp.Expr:
    return found.comparison(this=found.value.copy(), expression=found.of_clock)


def asks_clock(tree: exp.Expr) -> bool:
    return any(function_name(node) in _CLOCKS for node in tree.find_all(exp.Func))


def _ends_of(term: exp.Expr) -> list[exp.Expr]:
    """A BETWEEN with the clock as its two comparisons."""
    inner = term.unnest()
    if not (isinstance(inner, exp.Between) and asks_clock(inner)):
        return [term]
    low = exp.GTE(this=inner.this.copy(), expression=inner.args["low"].copy())
    high = exp.LTE(this=inner.this.copy(), expression=inner.args["high"].copy())
    return [low, high]


def _read(node: exp.Expr) -> exp.Expr:
    """What a call reads from the row of the clock."""
    name = function_name(node)
    time = exp.Max(this=exp.column(TIME_OF_CLOCK, quoted=True))
    return time if name in _TIMES else exp.cast(time, exp.DataType.Type.DATE) if name in _DATES else node
