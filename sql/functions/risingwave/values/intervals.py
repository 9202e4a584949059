"""Intervals: months, days and microseconds, each of its own."""

from __future__ import annotations

from sqlglot import exp

from dovetail.changelog.errors import SqlError
from dovetail.changelog.formats import interval_texts
from dovetail.sql.functions.interval_columns import INTERVAL
from dovetail.sql.functions.typed import Typed

_FORMS = "'1 day 02:30:00', '3 hours', '2 months'"


def literal(value: Typed, text: str, unit: str = "") -> Typed:
    """An interval that is written out; a number without a unit is of ``unit``, seconds without one."""
    return value.of(tree(*parsed(text, unit)), INTERVAL)


def tree(months: int, days: int, micros: int) -> exp.Expr:
    parts = ((months, "months"), (days, "days"), (micros, "microseconds"))
    text = " ".join(f"{count} {unit}" for count, unit in parts if count)
    return exp.Interval(this=exp.Literal.string(text or "0 days"))


def parsed(text: str, unit: str = "") -> tuple[int, int, int]:
    """Months, days, microseconds. Raises SqlError for what is no interval."""
    try:
        return interval_texts.parsed(text, unit)
    except interval_texts.TooManyHours:
        raise SqlError(
            f"'{text}' has more hours than an interval holds", fix="at most 2562047 hours: write days"
        ) from None
    except interval_texts.UnknownUnit as fault:
        raise SqlError(f"an interval has no unit '{fault}'", fix=_FORMS) from None
    except ValueError:
        raise SqlError(f"'{text}' is no interval", fix=_FORMS) from None
