"""Lengths of time: from an INTERVAL expression to milliseconds, or to months."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, InvalidOperation

from sqlglot import exp

UNIT_MS = {
    "NANOSECOND": Decimal("0.000001"),
    "MICROSECOND": Decimal("0.001"),
    "MILLISECOND": Decimal(1),
    "SECOND": Decimal(1000),
    "MINUTE": Decimal(60_000),
    "HOUR": Decimal(3_600_000),
    "DAY": Decimal(86_400_000),
    "WEEK": Decimal(604_800_000),
}
"""MONTH, QUARTER and YEAR have no fixed length."""
_MONTHS = {"MONTH": Decimal(1), "QUARTER": Decimal(3), "YEAR": Decimal(12)}
UNIT_WORDS = frozenset(unit + more for unit in (*UNIT_MS, *_MONTHS) for more in ("", "S"))
"""The words of an interval that are its unit, in upper case."""

_SHORT = {
    "NS": "NANOSECOND",
    "US": "MICROSECOND",
    "MS": "MILLISECOND",
    "S": "SECOND",
    "M": "MINUTE",
    "H": "HOUR",
    "D": "DAY",
    "W": "WEEK",
    "SEC": "SECOND",
    "MIN": "MINUTE",
    "HR": "HOUR",
}


def unit_ms(unit: str) -> Decimal | None:
    """Milliseconds in one ``unit`` ('second', 'SECONDS', 's'); None for a unit that has no fixed length."""
    upper = unit.upper()
    return UNIT_MS.get(_SHORT.get(upper) or upper.removesuffix("S"))


def milliseconds(interval: exp.Expr) -> Decimal | None:
    """The length of an ``exp.Interval`` with a literal count, exact; None for what is no such interval.

    A text in PostgreSQL's manner may hold several parts and a sign: ``INTERVAL '1 minute 30 seconds'``.
    """
    return _length(interval, unit_ms)


def months(interval: exp.Expr) -> Decimal | None:
    """As ``milliseconds``, of an interval of months, quarters and years alone."""
    return _length(interval, lambda unit: _MONTHS.get(unit.upper().removesuffix("S")))


def _length(interval: exp.Expr, scale_of: Callable[[str], Decimal | None]) -> Decimal | None:
    if isinstance(interval, exp.Neg):
        inner = _length(interval.this, scale_of)
        return None if inner is None else -inner
    if isinstance(interval, exp.Paren):
        return _length(interval.this, scale_of)
    if not isinstance(interval, exp.Interval):
        return None
    count = interval.this.this if isinstance(interval.this, exp.Neg) else interval.this
    if not isinstance(count, exp.Literal):
        return None
    sign = -1 if isinstance(interval.this, exp.Neg) else 1
    words = str(count.this).split() + ([interval.unit.name] if interval.unit is not None else [])
    length = _sum_of_parts(words, scale_of)
    return None if length is None else sign * length


def _sum_of_parts(words: list[str], scale_of: Callable[[str], Decimal | None]) -> Decimal | None:
    """``['1', 'minute', '30', 'seconds']`` in one unit."""
    if len(words) % 2:
        return None
    total = Decimal(0)
    for count, unit in zip(words[::2], words[1::2], strict=True):
        scale = scale_of(unit)
        if scale is None:
            return None
        try:
            total += Decimal(count) * scale
        except InvalidOperation:
            return None
    return total if total.is_finite() else None
