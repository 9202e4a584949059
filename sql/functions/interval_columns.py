"""Intervals in columns, which hold their texts: ``1 year 2 mons 3 days 04:05:06``.

An expression reads such a column as an interval of the engine; what it gives becomes a text again where it is kept.
Where intervals are put in an order, or tested for being equal, a number stands for each: a month is 30 days long.
"""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import Unsupported
from dovetail.sql.functions.aggregate_calls import OF_ONE, filtered
from dovetail.sql.functions.typed import filled, once

INTERVAL = pa.month_day_nano_interval()
_OF_TEXT = "interval of a text"
"""The key in the metadata of a tree that reads the interval of a text."""


def read(text: exp.Expr) -> exp.Expr:
    """The interval that a text in the one form means."""
    tree = filled("CAST(replace({0}, '+', '') AS INTERVAL)", [text])
    tree.meta[_OF_TEXT] = text
    return tree


def kept(interval: exp.Expr) -> exp.Expr:
    """The text of an interval in the one form; of one that was read of a text, that text."""
    text = interval.unnest().meta.get(_OF_TEXT)
    return text.copy() if isinstance(text, exp.Expr) else interval_text(interval)


_LENGTH = (
    "CAST((CAST(year(v_) AS HUGEINT) * 12 + month(v_)) * 2592000000000 + CAST(day(v_) AS HUGEINT) * 86400000000 + "
    "CAST(hour(v_) AS HUGEINT) * 3600000000 + minute(v_) * 60000000 + microsecond(v_) AS DECIMAL(38, 0))"
)
LENGTH = pa.decimal128(38, 0)


def length(interval: exp.Expr) -> exp.Expr:
    """Microseconds, a month being of 30 days: equal for equal intervals, and in their order."""
    return once(interval, "v_", _LENGTH)


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
    parts = ("CAST(year(v_) AS BIGINT) * 12 + month(v_)", "CAST(day(v_) AS BIGINT)", f"CAST({_TIME} AS BIGINT)")
    made = filled(template, [kept(interval), length(interval), *(once(interval, "v_", part) for part in parts)])
    if isinstance(call, exp.Filter):
        made = filtered(made, call.expression.this)
    return read(made) if name in ("min", "max") else made


_OF_TEXTS = frozenset({"count", "approx_count_distinct", "jsonb_agg", "jsonb_object_agg"})
_SUM = (
    "to_months(CAST(sum({2}) AS INTEGER)) + to_days(CAST(sum({3}) AS INTEGER)) + "
    "to_microseconds(CAST(sum({4}) AS BIGINT))"
)
_OF_ALL = {
    "min": "arg_min({0}, {1} ORDER BY {0})",
    "max": "arg_max({0}, {1} ORDER BY {0})",
    "sum": _SUM,
    # Parts of a month are of days, parts of a day of time.
    "avg": f"({_SUM}) * (1 / nullif(CAST(count({{0}}) AS DOUBLE), 0))",
}
"""{0} is the text of an interval, {1} its length, then its months, its days and the microseconds of its time."""


_UNITS = (
    ("year", "CAST(year(v_) AS BIGINT)"),
    ("mon", "CAST(month(v_) AS BIGINT)"),
    ("day", "CAST(day(v_) AS BIGINT)"),
)
_TIME = "(hour(v_) * 3600000000 + minute(v_) * 60000000 + microsecond(v_))"


def interval_text(value: exp.Expr) -> exp.Expr:
    """``1 year 2 mons 3 days 04:05:06``: after a part below zero, one above zero has a plus."""
    parts, negative = [], "false"
    for unit, size in _UNITS:
        sign = f"CASE WHEN {size} > 0 AND {negative} THEN '+' ELSE '' END"
        name = f"CASE WHEN {size} = 1 THEN ' {unit}' ELSE ' {unit}s' END"
        parts.append(f"CASE WHEN {size} <> 0 THEN {sign} || {size} || {name} END")
        negative = f"CASE WHEN {size} <> 0 THEN {size} < 0 ELSE {negative} END"
    sign = f"CASE WHEN {_TIME} < 0 THEN '-' WHEN {negative} THEN '+' ELSE '' END"
    clock = (
        f"CASE WHEN abs({_TIME}) < 36000000000 THEN '0' ELSE '' END || CAST(abs({_TIME}) // 3600000000 AS VARCHAR)"
        f" || ':' || lpad(CAST(abs({_TIME}) // 60000000 % 60 AS VARCHAR), 2, '0')"
        f" || ':' || lpad(CAST(abs({_TIME}) // 1000000 % 60 AS VARCHAR), 2, '0')"
        f" || CASE WHEN {_TIME} % 1000000 <> 0 THEN rtrim('.' || lpad(CAST(abs({_TIME}) % 1000000 AS "
        f"VARCHAR), 6, '0'), '0') ELSE '' END"
    )
    is_empty = " AND ".join(f"{size} = 0" for _, size in _UNITS)
    parts.append(f"CASE WHEN {_TIME} <> 0 OR {is_empty} THEN {sign} || {clock} END")
    shown = f"CASE WHEN v_ IS NOT NULL THEN concat_ws(' ', {', '.join(parts)}) END"
    return once(value, "v_", shown)
