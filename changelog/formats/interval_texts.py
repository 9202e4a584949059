"""Intervals as texts: months, days and microseconds, each of its own, as PostgreSQL reads and writes them.

``1 year 2 mons 3 days 04:05:06``; also ISO 8601, ``P1Y2M3DT4H5M6S``, is read.
"""

from __future__ import annotations

import re
from fractions import Fraction

import pyarrow as pa
import pyarrow.compute as pc

_SECOND = 1_000_000
_MINUTE, _HOUR = 60 * _SECOND, 3600 * _SECOND
_MICROS = {"microsecond": 1, "millisecond": 1000, "second": _SECOND, "minute": _MINUTE, "hour": _HOUR}
_LONGEST = ((1 << 63) - 1) // 1000
"""Microseconds that an answer can hold, which counts nanoseconds."""
_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200, "millennium": 12000}
_MOST = (1 << 31) - 1
"""Months, or days, that an interval can have."""
_SHORT = {
    "us": "microsecond", "usec": "microsecond", "ms": "millisecond", "msec": "millisecond", "s": "second",
    "sec": "second", "m": "minute", "min": "minute", "h": "hour", "hr": "hour", "d": "day", "w": "week", "mon": "month",
    "y": "year", "yr": "year", "centurie": "century", "millennia": "millennium",
}  # fmt: skip
_PART = re.compile(
    r"\s*+([+-]?)\s*+(?:(\d{1,18}+):(\d{1,2})(?::(\d{1,2}(?:\.\d{1,18}+)?))?"
    r"|(\d{1,18}+(?:\.\d{1,18}+)?|\.\d{1,18}+)(?![\d.])\s*+([a-zA-Z]*))\s*+"
)
_ISO = re.compile(r"[pP](?=[\dtT+-])([^tT]*)(?:[tT](.+))?")
_ISO_PART = re.compile(r"([+-]?\d{1,18}(?:\.\d{1,18})?)([a-zA-Z])")
_ISO_DATES = {"y": "year", "m": "month", "w": "week", "d": "day"}
_ISO_TIMES = {"h": "hour", "m": "minute", "s": "second"}


class TooManyHours(ValueError):
    """An interval that no answer can hold."""


class UnknownUnit(ValueError):
    """What is no unit of time."""


def unit_of(name: str) -> str:
    """``days``, ``day`` and ``d`` are ``day``. Raises UnknownUnit."""
    folded = name.lower()
    for tried in (folded, folded.removesuffix("s")):
        unit = _SHORT.get(tried, tried)
        if unit in _MICROS or unit in _DAYS or unit in _MONTHS:
            return unit
    raise UnknownUnit(name)


def parsed(text: str, unit: str = "") -> tuple[int, int, int]:
    """Months, days, microseconds. A part of a month is of days, a part of a day of time; a number without a unit is of
    ``unit``, seconds without one. Raises ValueError for what is no interval.
    """
    whole = text.strip()
    parts = _iso_parts(whole)
    ago = False
    if parts is None:
        whole = whole.removeprefix("@")
        rest = whole.removesuffix("ago")
        ago = rest != whole and rest[-1:].isspace()
        parts = _parts(rest, unit)
    months, days, micros = Fraction(0), Fraction(0), Fraction(0)
    for size, named in parts:
        months += size * _MONTHS.get(named, 0)
        days += size * _DAYS.get(named, 0)
        micros += size * _MICROS.get(named, 0)
    whole_months = int(months)
    days += (months - whole_months) * 30
    whole_days = int(days)
    micros += (days - whole_days) * 24 * _HOUR
    if abs(micros) > _LONGEST:
        raise TooManyHours(text)
    if max(abs(whole_months), abs(whole_days)) > _MOST:
        raise ValueError(text)
    direction = -1 if ago else 1
    return direction * whole_months, direction * whole_days, direction * round(micros)


def _parts(text: str, unit: str) -> list[tuple[Fraction, str]]:
    """``1 day 02:30:00``: how many of each unit."""
    if not text.strip():
        raise ValueError(text)
    found: list[tuple[Fraction, str]] = []
    at = 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None or part.end() == at:
            raise ValueError(text)
        sign, hours, minutes, seconds, count, word = part.groups()
        factor = -1 if sign == "-" else 1
        if hours is not None:
            clock = 3600 * int(hours) + 60 * int(minutes) + Fraction(seconds or 0)
            found.append((factor * clock, "second"))
        else:
            found.append((factor * Fraction(count), unit_of(word or unit or "second")))
        at = part.end()
    return found


def _iso_parts(text: str) -> list[tuple[Fraction, str]] | None:
    """``P1Y2M3DT4H5M6S``; None where the text is of another form."""
    if (whole := _ISO.fullmatch(text)) is None:
        return None
    found: list[tuple[Fraction, str]] = []
    for part, units in ((whole[1], _ISO_DATES), (whole[2] or "", _ISO_TIMES)):
        if _ISO_PART.sub("", part):
            raise ValueError(text)
        for count, letter in _ISO_PART.findall(part):
            if letter.lower() not in units:
                raise ValueError(text)
            found.append((Fraction(count), units[letter.lower()]))
    return found


def interval_text(text: str) -> str:
    """The interval that ``text`` means, in the one form. Raises ValueError for what means none."""
    return written(*parsed(text))


def written(months: int, days: int, micros: int) -> str:
    """After a part below zero, one above zero has a plus."""
    years, rest = divmod(abs(months), 12)
    sign = -1 if months < 0 else 1
    parts: list[str] = []
    negative = False
    for count, unit in ((sign * years, "year"), (sign * rest, "mon"), (days, "day")):
        if count:
            parts.append(f"{'+' if count > 0 and negative else ''}{count} {unit}{'' if count == 1 else 's'}")
            negative = count < 0
    if micros or not parts:
        sign_of_time = "-" if micros < 0 else "+" if negative else ""
        seconds, fraction = divmod(abs(micros), _SECOND)
        shown = f".{fraction:06}".rstrip("0") if fraction else ""
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{shown}"
        parts.append(sign_of_time + clock)
    return " ".join(parts)


_DAY = "1 day|(?:[2-9]|[1-9][0-9]{1,7}) days"
_CLOCK = r"[0-9]{2}:[0-5][0-9]:[0-5][0-9](?:\.[0-9]{0,5}[1-9])?"
_PLAIN = f"^(?:{_DAY}|(?:(?:{_DAY}) )?{_CLOCK})$"
"""Intervals that are in the one form for sure, those of days and hours; others need a closer look."""


def maybe_otherwise(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Which texts may be of another form, or no intervals; NULL is none of them."""
    plain = pc.and_not(pc.match_substring_regex(column, _PLAIN), pc.match_substring(column, " 00:00:00"))
    zero = pc.match_substring_regex(column, r" 00:00:00\.")
    return pc.fill_null(pc.invert(pc.or_(plain, zero)), False)
