"""How a value of a driver, or a text, becomes a value of a column's type, as ``to_pylist`` of that type gives it.

Text is read for every type, since SQLite, CSV and JSON have few types of their own. A time without zone is in UTC;
MySQL's zero dates are NULL. A value that would lose digits is refused, except that a number becomes a float as usual.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any
from uuid import UUID

import orjson
import pyarrow as pa

from dovetail.changelog.formats import time_text
from dovetail.changelog.wording import type_words

Read = Callable[[Any], Any]
ReadColumn = Callable[[Sequence[Any]], Sequence[Any]]

_TRUE = frozenset({"true", "t", "yes", "y", "on", "1"})
_FALSE = frozenset({"false", "f", "no", "n", "off", "0"})
_ZERO_DATE = "0000-00-00"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_DAY = date(1970, 1, 1)
_EXACT = Context(prec=80, traps=[Inexact, InvalidOperation])
_NONE = type(None)
_SHOWN = 40


class UnfitValue(Exception):
    """A value that a type does not hold."""

    def __init__(self, value: Any, kind: pa.DataType) -> None:
        shown = str(value)
        shown = shown if len(shown) <= _SHOWN else shown[:_SHOWN] + ".."
        super().__init__(f"{type(value).__name__} '{shown}' is no {type_words(kind)}")


def column_reader(kind: pa.DataType) -> ReadColumn:
    """Reads the values of one column; None stays. Raises UnfitValue.

    A column whose values are of the right type already is passed on as it is.
    """
    read, plain = value_reader(kind), _plain(kind)
    low, high = _bounds(kind) if pa.types.is_integer(kind) else (None, None)

    def read_column(values: Sequence[Any]) -> Sequence[Any]:
        if set(map(type, values)) == {plain} and (low is None or (min(values) >= low and max(values) <= high)):
            return values
        return [None if value is None else read(value) for value in values]

    return read_column


def value_reader(kind: pa.DataType) -> Read:
    """Reads one value that is not None. Raises UnfitValue."""
    build = next((build for holds, build in _READERS if holds(kind)), _nested)
    convert = build(kind)

    def read(value: Any) -> Any:
        try:
            return convert(value)
        except (ValueError, TypeError, OverflowError, ArithmeticError, pa.ArrowException):
            raise UnfitValue(value, kind) from None

    return read


def _plain(kind: pa.DataType) -> type | None:
    """The Python type that needs no reading."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return str
    if pa.types.is_integer(kind):
        return int
    return {pa.bool_(): bool, pa.float64(): float, pa.binary(): bytes}.get(kind)


def _bounds(kind: pa.DataType) -> tuple[int, int]:
    if pa.types.is_signed_integer(kind):
        return -(1 << (kind.bit_width - 1)), (1 << (kind.bit_width - 1)) - 1
    return 0, (1 << kind.bit_width) - 1


def _text(kind: pa.DataType) -> Read:
    def read(value: Any) -> str | None:
        if isinstance(value, str):
            return value
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value).decode()
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, Decimal):
            return format(value, "f")
        if isinstance(value, datetime):
            return str(_utc(value).replace(tzinfo=None))
        if isinstance(value, int | float | UUID | date | time | timedelta):
            return str(value)
        return orjson.dumps(value, default=str).decode()

    return read


def _boolean(kind: pa.DataType) -> Read:
    def read(value: Any) -> bool:
        if isinstance(value, bytes):  # BIT(1)
            value = int.from_bytes(value, "big")
        if isinstance(value, str):
            word = value.strip().lower()
            if word in _TRUE or word in _FALSE:
                return word in _TRUE
        elif value in (0, 1):
            return bool(value)
        raise ValueError

    return read


def _integer(kind: pa.DataType) -> Read:
    low, high = _bounds(kind)

    def read(value: Any) -> int:
        if isinstance(value, bytes):  # BIT(n)
            value = int.from_bytes(value, "big")
        number = int(value)
        # int() of a text takes no point; of a float or a decimal it would cut the fraction off.
        if not low <= number <= high or (not isinstance(value, str) and number != value):
            raise ValueError
        return number

    return read


def _float(kind: pa.DataType) -> Read:
    if kind == pa.float64():
        return float
    single = struct.Struct("f")

    def read(value: Any) -> float:
        rounded: float = single.unpack(single.pack(float(value)))[0]
        return rounded

    return read


def _decimal(kind: pa.DataType) -> Read:
    unit = Decimal(1).scaleb(-kind.scale)
    bound = Decimal(10) ** (kind.precision - kind.scale)

    def read(value: Any) -> Decimal:
        if isinstance(value, float):
            number = Decimal(repr(value)).quantize(unit)
        else:
            number = Decimal(value).quantize(unit, context=_EXACT)
        if abs(number) >= bound:
            raise ValueError
        return number

    return read


def _binary(kind: pa.DataType) -> Read:
    def read(value: Any) -> bytes:
        return value.encode() if isinstance(value, str) else bytes(memoryview(value))

    return read


def _utc(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


def _instant(kind: pa.DataType) -> Read:
    unit = time_text.NANOSECONDS[kind.unit] // time_text.NANOSECONDS["us"]

    def read(value: Any) -> datetime | None:
        if isinstance(value, str) and value.startswith(_ZERO_DATE):
            return None
        instant = _moment(value)
        instant -= timedelta(microseconds=(instant - _EPOCH) // timedelta(microseconds=1) % unit)
        return instant if kind.tz else instant.replace(tzinfo=None)

    return read


def _moment(value: Any) -> datetime:
    if isinstance(value, datetime):
        return _utc(value)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, str):
        nanoseconds = time_text.instant_of_text(value)
    elif isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        nanoseconds = time_text.instant_of_number(value)
    else:
        nanoseconds = None
    if nanoseconds is None:
        raise ValueError
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)


def _date(kind: pa.DataType) -> Read:
    def read(value: Any) -> date | None:
        if isinstance(value, str):
            if value.startswith(_ZERO_DATE):
                return None
            days = time_text.day_of_text(value.strip())
            if days is None:
                raise ValueError
            return _FIRST_DAY + timedelta(days=days)
        if isinstance(value, datetime):
            if value.time() != time():
                raise ValueError
            return value.date()
        if isinstance(value, date):
            return value
        raise ValueError

    return read


def _time_of_day(kind: pa.DataType) -> Read:
    def read(value: Any) -> time:
        if isinstance(value, time):
            return value.replace(tzinfo=None)
        if isinstance(value, str):
            nanoseconds = time_text.time_of_day(value)
            value = None if nanoseconds is None else timedelta(microseconds=nanoseconds // 1000)
        # MySQL's TIME is a span of up to 838 hours.
        if not isinstance(value, timedelta) or not timedelta() <= value < timedelta(days=1):
            raise ValueError
        return (_EPOCH + value).time()

    return read


def _nested(kind: pa.DataType) -> Read:
    def read(value: Any) -> Any:
        given = orjson.loads(value) if isinstance(value, str | bytes) else value
        return pa.array([given], kind).to_pylist()[0]

    return read


_READERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], Read]], ...] = (
    (pa.types.is_string, _text),
    (pa.types.is_large_string, _text),
    (pa.types.is_boolean, _boolean),
    (pa.types.is_integer, _integer),
    (pa.types.is_floating, _float),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_binary, _binary),
    (pa.types.is_large_binary, _binary),
    (pa.types.is_timestamp, _instant),
    (pa.types.is_date32, _date),
    (pa.types.is_time, _time_of_day),
)
