"""A value of a parameter as a literal of a tree: it is never written into the text of a statement."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache

from sqlglot import exp

from dovetail.changelog.errors import SqlError
from dovetail.sql.syntax.grammar.queries import READERS
from dovetail.sql.syntax.rules import Rules

Argument = str | int | float | bool | Decimal | date | datetime | None
"""What a parameter may be. A time without a zone is one of UTC."""
Arguments = Sequence[object] | Mapping[str, object]
"""The values of ``?``, in the order of the text, or of ``:name``."""

_KINDS = "a text, a number, a truth value, NULL, a date, a time or a decimal"
_MOST_DIGITS = 38
_GREATEST = 2**127
_TIMES: Mapping[Rules, tuple[str, str]] = {
    Rules.TIMEPLUS: ("datetime64(6, 'UTC')", "datetime64(6, 'UTC')"),
    Rules.RISINGWAVE: ("TIMESTAMP", "TIMESTAMPTZ"),
}
"""The types of times without and with a zone."""


def expect_arguments(given: object) -> None:
    """Raises SqlError for what is neither ``Arguments`` nor None."""
    match given:
        case Mapping():
            unnamed = next((name for name in given if not isinstance(name, str)), None)
            if unnamed is None:
                return
            what = f"{unnamed!r} is not the name of a parameter"
        case None:
            return
        case Sequence() if not isinstance(given, str | bytes | bytearray):
            return
        case _:
            what = f"the arguments are neither a list nor an object, but {type(given).__name__}"
    raise SqlError(what, where="arguments", fix='give the values of ? as [1, "x"], those of :name as {"name": 1}')


def checked(value: object, called: str) -> Argument:
    """Raises SqlError for what no literal can be; ``called`` is the parameter as the text has it."""
    match value:
        case datetime() if not _has_utc(value):
            fix = "send a time of the years 1 to 9999 in UTC"
            raise SqlError(f"the value of {called} is a time that cannot be written", where="arguments", fix=fix)
        case None | bool() | str() | date():
            return value
        case int() if abs(value) < _GREATEST:
            return value
        case float() if math.isfinite(value):
            return value
        case Decimal() if value.is_finite() and sum(_digits(value)) <= _MOST_DIGITS:
            return value
        case int() | float() | Decimal():
            fix = f"send a number of at most {_MOST_DIGITS} digits, or NULL"
            raise SqlError(f"the value of {called} is a number that cannot be written", where="arguments", fix=fix)
    what = f"the value of {called} has the type {type(value).__name__}, which no parameter takes"
    raise SqlError(what, where="arguments", fix=f"send {_KINDS}")


def tree_of(value: Argument, rules: Rules) -> exp.Expr:
    """The literal, as the dialect reads it; of a type that the dialect writes as a text, a CAST of the text."""
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case str():
            return exp.Literal.string(value)
        case int():
            return _number(str(abs(value)), value < 0)
        case float():
            number = _number(repr(abs(value)), math.copysign(1.0, value) < 0)
            return number if rules is Rules.TIMEPLUS else exp.cast(number, exp.DType.DOUBLE)
        case Decimal():
            before, behind = _digits(value)
            return _cast(f"{value:f}", f"decimal({max(before + behind, 1)}, {behind})", rules)
        case datetime():
            plain, zoned = _TIMES[rules]
            aware = value.tzinfo is not None
            zone = "+00:00" if aware and rules is Rules.RISINGWAVE else ""
            return _cast(f"{_utc(value)}{zone}", zoned if aware else plain, rules)
        case date():
            return _cast(value.isoformat(), "date", rules)


def value_of(value: Argument) -> object:
    """The same as a value of VALUES: the type of its column decides."""
    match value:
        case datetime():
            return _utc(value)
        case date():
            return value.isoformat()
        case _:
            return value


def _number(text: str, negative: bool) -> exp.Expr:
    number = exp.Literal.number(text)
    return exp.Neg(this=number) if negative else number


def _digits(value: Decimal) -> tuple[int, int]:
    """Before and behind the point."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    behind = max(-exponent, 0)
    return max(len(digits) + exponent, 0), behind


def _has_utc(value: datetime) -> bool:
    """A zone may put it before the first year, or behind the last."""
    try:
        _utc(value)
    except OverflowError:
        return False
    return True


def _utc(value: datetime) -> str:
    moment = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
    return moment.isoformat(sep=" ", timespec="microseconds")


def _cast(text: str, kind: str, rules: Rules) -> exp.Expr:
    tree = _empty_cast(kind, rules).copy()
    tree.this.replace(exp.Literal.string(text))
    return tree


@cache
def _empty_cast(kind: str, rules: Rules) -> exp.Expr:
    [tree] = READERS[rules].parse(f"CAST('' AS {kind})")
    assert tree is not None
    return tree
