"""Intervals in columns, which hold their texts: ``1 year 2 mons 3 days 04:05:06``.

An expression reads such a column as an interval of the engine; what it gives becomes a text again where it is kept.
Where intervals are put in an order, or tested for being equal, a number stands for each: a month is 30 days long.
"""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import Unsupported
from dovetail.sql.functions.aggregate_calls import OF_ONE, filtered
from dovetail.sql.functions.typed import filled

INTERVAL = pa.month_day_nano_interval()
_READ = "interval_of"
LENGTH = pa.decimal128(38, 0)


def read(text: exp.Expr) -> exp.Expr:
    """The interval that a text in the one form means."""
    return filled(f"{_READ}({{0}})", [text])


def kept(interval: exp.Expr) -> exp.Expr:
    """The text of an interval in the one form; of one that was read of a text, that text."""
    inner = interval.unnest()
    if isinstance(inner, exp.Anonymous) and inner.this == _READ:
        text: exp.Expr = inner.expressions[0]
        return text.copy()
    return interval_text(interval)


def interval_text(interval: exp.Expr) -> exp.Expr:
    """``1 year 2 mons 3 days 04:05:06``"""
    return filled("interval_text({0})", [interval])


def length(interval: exp.Expr) -> exp.Expr:
    """By what intervals are told apart and put in order: a number, of the type ``LENGTH``."""
    return filled("interval_length({0})", [interval])


def aggregated_intervals(name: str, call: exp.Expr, interval: exp.Expr, place: str) -> exp.Expr | None:
    """An aggregate over the intervals of a group, whose value is an interval: ``call`` is that over their texts. None
    of one that counts, or makes something else of the texts. Raises Unsupported for those that cannot be.
    """
    if name in OF_ONE:
        return read(call)
    template = _OF_ALL.get(name)
    if template is None:
        if name in _OF_TEXTS:
            return None
        raise Unsupported(
            f"{name}() of intervals is not supported", where=place, fix=f"{name}(extract(epoch FROM x)), of seconds"
        )
    if call.find(exp.Distinct) is not None:
        raise Unsupported(f"{name}(DISTINCT x) of intervals is not supported", where=place, fix=f"{name}(x)")
    made = filled(template, [kept(interval), interval])
    if isinstance(call, exp.Filter):
        made = filtered(made, call.expression.this)
    return read(made) if name in ("min", "max") else made


_OF_TEXTS = frozenset({"count", "approx_count_distinct", "jsonb_agg", "jsonb_object_agg"})
_SUM = (
    "to_months(TRY_CAST(sum(interval_months({1})) AS INTEGER)) + to_days(TRY_CAST(sum(interval_days({1})) AS INTEGER)) "
    "+ to_microseconds(TRY_CAST(sum(interval_time({1})) AS BIGINT))"
)
_OF_ALL = {
    "min": "arg_min({0}, interval_length({1}) ORDER BY {0})",
    "max": "arg_max({0}, interval_length({1}) ORDER BY {0})",
    "sum": _SUM,
    # Parts of a month are of days, parts of a day of time.
    "avg": f"({_SUM}) * (1 / nullif(CAST(count({{0}}) AS DOUBLE), 0))",
}
"""{0} is the text of an interval, {1} the interval."""
