"""How a parsed JSON value becomes a value of a column's type, one value at a time."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from decimal import Context, Decimal, InvalidOperation
from typing import Any

import pyarrow as pa

from dovetail.changelog.formats import time_text
from dovetail.changelog.wording import type_words

Convert = Callable[[Any], Any]
"""From a parsed JSON value, not null, to what ``pa.array`` takes for the type. Raises Mismatch."""

_EXACT_IN_FLOAT = 2**53
_EXACT = Context(prec=76)
_LONGEST = 4300
"""The most digits that Python makes a number of."""
_SHOWN = 60
_FAR = 10**28
"""Beyond all counts of nanoseconds that a column of seconds holds."""


class Mismatch(Exception):
    """``found`` is not of the type; ``expected`` names it."""

    def __init__(self, found: Any, expected: str) -> None:
        super().__init__(f"expected {expected}, found {described(found)}")


def type_name(arrow_type: pa.DataType) -> str:
    """The type as a message names it."""
    names = {pa.string(): "text", pa.bool_(): "boolean", pa.float64(): "float64", pa.float32(): "float32"}
    if pa.types.is_timestamp(arrow_type):
        return "time"
    return names.get(arrow_type) or type_words(arrow_type)


def described(value: Any) -> str:
    """A JSON value as a message shows it: its kind, and its beginning."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"boolean {str(value).lower()}"
    if isinstance(value, str):
        return f"text '{value[:_SHOWN]}'" + ("…" if len(value) > _SHOWN else "")
    if isinstance(value, list):
        return f"an array of {len(value)}"
    if isinstance(value, dict):
        return f"an object of {len(value)}"
    return f"number {_digits(value)}"


def _digits(number: float | Decimal) -> str:
    # Python makes no text of a whole number of more digits than it reads.
    text = str(Decimal(number) if isinstance(number, int) else number)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def converter(arrow_type: pa.DataType) -> Convert:
    """How values of a type are read. Raises TypeError for a type that has no form in JSON."""
    for is_of, build in _BUILDERS:
        if is_of(arrow_type):
            return build(arrow_type)
    raise TypeError(f"{arrow_type} has no form in JSON")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _typed(python_type: type, arrow_type: pa.DataType) -> Convert:
    def convert(value: Any) -> Any:
        if not isinstance(value, python_type):
            raise Mismatch(value, type_name(arrow_type))
        return value

    return convert


def _integer(arrow_type: pa.DataType) -> Convert:
    values = 1 << arrow_type.bit_width
    low = -values // 2 if pa.types.is_signed_integer(arrow_type) else 0
    high = low + values - 1

    def convert(value: Any) -> int:
        if not _is_number(value):
            raise Mismatch(value, type_name(arrow_type))
        if not low <= value <= high:
            raise Mismatch(value, f"{type_name(arrow_type)} ({low} to {high})")
        # 1.0 is an integer; beyond 2^53 the parser has lost digits of a number with a point.
        if not isinstance(value, int) and (abs(value) > _EXACT_IN_FLOAT or value != int(value)):
            raise Mismatch(value, type_name(arrow_type))
        return int(value)

    return convert


def _float(arrow_type: pa.DataType) -> Convert:
    def convert(value: Any) -> float:
        if not _is_number(value):
            raise Mismatch(value, type_name(arrow_type))
        return float(value)

    return convert


def _decimal(arrow_type: pa.DataType) -> Convert:
    last = Decimal(1).scaleb(-arrow_type.scale)

    def convert(value: Any) -> Decimal:
        number = _number(value)
        if number is None or not number.is_finite() or not _holds(arrow_type, number):
            raise Mismatch(value, type_name(arrow_type))
        # Arrow takes neither zeros beyond the scale nor a zero with a great exponent.
        return number.quantize(last, context=_EXACT)

    return convert


def _number(value: Any) -> Decimal | None:
    """None where it is none. Decimal reads more than JSON has: digits of any script, and ``_`` between them."""
    if not (_is_number(value) or (isinstance(value, str) and value.isascii() and "_" not in value)):
        return None
    try:
        return Decimal(value)
    except InvalidOperation:
        return None


def _holds(arrow_type: pa.DataType, number: Decimal) -> bool:
    # abs() would round to 28 digits, and take 29 nines for a number that is too large.
    bound = Decimal(10) ** (arrow_type.precision - arrow_type.scale)
    return bool(number.copy_abs() < bound and _scale(number) <= arrow_type.scale)


def _scale(number: Decimal) -> int:
    """Digits after the point, trailing zeros aside."""
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int) or not any(digits):
        return 0
    trailing = len(digits) - len("".join(map(str, digits)).rstrip("0"))
    return max(0, -exponent - trailing)


def _base64(arrow_type: pa.DataType) -> Convert:
    def convert(value: Any) -> bytes:
        try:
            return base64.b64decode(value if isinstance(value, str) else "?", validate=True)
        except (binascii.Error, ValueError):
            raise Mismatch(value, "binary as base64 text") from None

    return convert


def _instant(arrow_type: pa.DataType) -> Convert:
    unit = time_text.NANOSECONDS[arrow_type.unit]

    def convert(value: Any) -> int:
        instant = None
        if isinstance(value, str):
            instant = time_text.instant_of_text(value)
        elif _is_number(value) and -_FAR < value < _FAR:
            instant = time_text.instant_of_number(value)
        if instant is None or not time_text.fits(instant, unit):
            raise Mismatch(value, type_name(arrow_type))
        return instant // unit

    return convert


def _date(arrow_type: pa.DataType) -> Convert:
    def convert(value: Any) -> int:
        day = time_text.day_of_text(value) if isinstance(value, str) else None
        if day is None:
            raise Mismatch(value, "date")
        return day

    return convert


def _time_of_day(arrow_type: pa.DataType) -> Convert:
    def convert(value: Any) -> int:
        since_midnight = time_text.time_of_day(value) if isinstance(value, str) else None
        if since_midnight is None:
            raise Mismatch(value, "time of day")
        return since_midnight // time_text.NANOSECONDS[arrow_type.unit]

    return convert


def _nullable(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _list(arrow_type: pa.DataType) -> Convert:
    check, element = _typed(list, arrow_type), _nullable(converter(arrow_type.value_type))
    return lambda value: [element(one) for one in check(value)]


def _struct(arrow_type: pa.DataType) -> Convert:
    check = _typed(dict, arrow_type)
    members = {field.name: _nullable(converter(field.type)) for field in arrow_type}
    return lambda value: {name: member(check(value).get(name)) for name, member in members.items()}


def _map(arrow_type: pa.DataType) -> Convert:
    check, key = _typed(dict, arrow_type), _map_key(arrow_type.key_type)
    element = _nullable(converter(arrow_type.item_type))
    return lambda value: [(key(name), element(one)) for name, one in check(value).items()]


def _map_key(arrow_type: pa.DataType) -> Convert:
    """Member names are texts in JSON: a number is read from its digits."""
    convert = converter(arrow_type)
    if not pa.types.is_integer(arrow_type):
        return convert

    def convert_digits(name: str) -> Any:
        digits = name.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= _LONGEST):
            raise Mismatch(name, type_name(arrow_type))
        return convert(int(name))

    return convert_digits


_BUILDERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], Convert]], ...] = (
    (pa.types.is_boolean, lambda arrow_type: _typed(bool, arrow_type)),
    (pa.types.is_integer, _integer),
    (pa.types.is_floating, _float),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_string, lambda arrow_type: _typed(str, arrow_type)),
    (pa.types.is_binary, _base64),
    (pa.types.is_timestamp, _instant),
    (pa.types.is_date32, _date),
    (pa.types.is_time, _time_of_day),
    (pa.types.is_map, _map),
    (pa.types.is_list, _list),
    (pa.types.is_struct, _struct),
)
