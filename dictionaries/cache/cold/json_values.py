"""Values as JSON can carry them, and back.

Numbers, text, booleans and NULL stand for themselves. Anything else is an object with its kind and a text:
``{"~": "decimal", "v": "1.50"}``. Never pickle: whoever can write to Redis must not be able to run code.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any

import pyarrow as pa

TAG = b'"~":'
"""What stands in the JSON of a value with a kind. Never within a text, where each quote has a backslash before it."""
_PLAIN_TYPES = (
    pa.types.is_integer,
    pa.types.is_boolean,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_null,
)
_FLOAT = {float, type(None)}
_DIGITS = 38
_LONGEST_DECIMAL = 2 * _DIGITS


def is_plain(kind: pa.DataType) -> bool:
    """Whether every value of the type stands for itself. A float does not: JSON has no NaN and no infinity."""
    return any(is_kind(kind) for is_kind in _PLAIN_TYPES)


def are_finite(values: Collection[Any]) -> bool:
    """Whether all are floats that JSON has, or NULL."""
    return set(map(type, values)) <= _FLOAT and all(map(isfinite, filter(None, values)))


def tagged(value: Any) -> Any:
    """The value as JSON carries it. Raises TypeError for a kind that is not known."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float) and isfinite(value):
        return value
    if isinstance(value, list):
        return [tagged(member) for member in value]
    for kind, name, write in _WRITERS:
        if isinstance(value, kind):
            return {"~": name, "v": write(value)}
    raise TypeError(f"a {type(value).__name__} cannot be cached")


def untagged(value: Any) -> Any:
    """What ``tagged`` was given. Raises KeyError, TypeError or ValueError for anything it does not write."""
    if isinstance(value, dict):
        return _READERS[value["~"]](value["v"])
    if isinstance(value, list):
        return [untagged(member) for member in value]
    return value


def _decimal(text: str) -> Decimal:
    """Arrow reads beyond its own tables for a number that no column holds: see ``changelog.formats.decimal_text``."""
    number = Decimal(text)
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int) or abs(exponent) > _DIGITS or len(text) > _LONGEST_DECIMAL:
        raise ValueError("it is no decimal of a column")
    return number


# A datetime is a date, so it stands first.
_WRITERS: tuple[tuple[type, str, Callable[[Any], Any]], ...] = (
    (datetime, "datetime", datetime.isoformat),
    (date, "date", date.isoformat),
    (time, "time", time.isoformat),
    (timedelta, "duration", lambda value: [value.days, value.seconds, value.microseconds]),
    (Decimal, "decimal", str),
    (bytes, "bytes", lambda value: base64.b64encode(value).decode()),
    (float, "float", repr),
    (tuple, "tuple", lambda value: [tagged(member) for member in value]),
    (dict, "object", lambda value: [[tagged(name), tagged(member)] for name, member in value.items()]),
)
_READERS: dict[str, Callable[[Any], Any]] = {
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "duration": lambda value: timedelta(*value),
    "decimal": _decimal,
    "bytes": base64.b64decode,
    "float": float,
    "tuple": lambda value: tuple(untagged(member) for member in value),
    "object": lambda value: {untagged(name): untagged(member) for name, member in value},
}
