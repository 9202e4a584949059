"""Intervals: months, days and microseconds, each of its own."""

from __future__ import annotations

import re
from fractions import Fraction

from sqlglot import exp

from dovetail.changelog.errors import SqlError
from dovetail.sql.functions.risingwave.values.kinds import INTERVAL
from dovetail.sql.functions.typed import Typed, once

_SECOND = 1_000_000
_MICROS = {"microsecond": 1, "millisecond": 1000, "second": _SECOND, "minute": 60 * _SECOND, "hour": 3600 * _SECOND}
_LONGEST = ((1 << 63) - 1) // 1000
"""Microseconds that an answer can hold, which counts nanoseconds."""
_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200, "millennium": 12000}
_SHORT = {
    "us": "microsecond", "usec": "microsecond", "ms": "millisecond", "msec": "millisecond", "s": "second",
    "sec": "second", "m": "minute", "min": "minute", "h": "hour", "hr": "hour", "d": "day", "w": "week", "mon": "month",
    "y": "year", "yr": "year", "centurie": "century", "millennia": "millennium",
}  # fmt: skip
_PART = re.compile(
    r"\s*+([+-]?)(?:(\d{1,18}+):(\d{1,2})(?::(\d{1,2}(?:\.\d{1,18}+)?))?"
    r"|(\d{1,18}+(?:\.\d{1,18}+)?|\.\d{1,18}+)(?![\d.])\s*+([a-zA-Z]*))\s*+"
)


def unit_of(name: str) -> str:
    """``days``, ``day`` and ``d`` are ``day``. Raises SqlError for what is no unit."""
    folded = name.lower()
    for tried in (folded, folded.removesuffix("s")):
        unit = _SHORT.get(tried, tried)
        if unit in _MICROS or unit in _DAYS or unit in _MONTHS:
            return unit
    raise SqlError(f"an interval has no unit '{name}'", fix="'1 day 02:30:00', '3 hours', '2 months'")


def literal(value: Typed, text: str, unit: str = "") -> Typed:
    """An interval that is written out; a number without a unit is of ``unit``, seconds without one."""
    return value.of(tree(*parsed(text, unit)), INTERVAL)


def tree(months: int, days: int, micros: int) -> exp.Expr:
    parts = ((months, "months"), (days, "days"), (micros, "microseconds"))
    text = " ".join(f"{count} {unit}" for count, unit in parts if count)
    return exp.Interval(this=exp.Literal.string(text or "0 days"))


def parsed(text: str, unit: str = "") -> tuple[int, int, int]:
    """Months, days, microseconds. A part of a month is of days, a part of a day of time."""
    months, days, micros = Fraction(0), Fraction(0), Fraction(0)
    whole = text.strip().removeprefix("@")
    rest = whole.removesuffix("ago")
    ago = rest != whole and rest[-1:].isspace()
    at = 0
    if not rest.strip():
        raise SqlError(f"'{text}' is no interval", fix="'1 day 02:30:00', '3 hours', '2 months'")
    while at < len(rest):
        found = _PART.match(rest, at)
        if found is None or found.end() == at:
            raise SqlError(f"'{text}' is no interval", fix="'1 day 02:30:00', '3 hours', '2 months'")
        sign, hours, minutes, seconds, count, word = found.groups()
        factor = -1 if sign == "-" else 1
        if hours is not None:
            micros += factor * _SECOND * (3600 * int(hours) + 60 * int(minutes) + Fraction(seconds or 0))
        else:
            size, named = factor * Fraction(count), unit_of(word or unit or "second")
            months += size * _MONTHS.get(named, 0)
            days += size * _DAYS.get(named, 0)
            micros += size * _MICROS.get(named, 0)
        at = found.end()
    whole_months = int(months)
    days += (months - whole_months) * 30
    whole_days = int(days)
    micros += (days - whole_days) * 24 * _MICROS["hour"]
    if abs(micros) > _LONGEST:
        raise SqlError(f"'{text}' has more hours than an interval holds", fix="at most 2562047 hours: write days")
    direction = -1 if ago else 1
    return direction * whole_months, direction * whole_days, direction * round(micros)


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
