"""How a value that a record of a feed carries becomes a value of a column's type, if there is only one way to read it.

A feed may fill a cache without the source being asked, so a doubtful value is refused where a source's would be read:
Debezium writes a decimal as the bytes of its digits in base64, of which ``"1234"`` is one, a date as a number of days,
a time as a number of some unit, and which it is stands in its settings. What is refused is asked for at the source.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa

from dovetail.changelog.formats.json_types import Mismatch, converter
from dovetail.dictionaries.sources.source_values import Read, UnfitValue, value_reader

_LEFT_OUT = "__debezium_unavailable_value"
"""Stands in Debezium's records for a long value that did not change."""
_EXACT_DIGITS = 15
"""A decimal that has passed through a double has so many digits at least."""

_Holds = Callable[[Any], bool]


def feed_value_reader(kind: pa.DataType, *, is_debezium: bool, is_key: bool) -> Read:
    """Reads a parsed JSON value, which is not null. Raises UnfitValue. A text is text at the source as well."""
    if pa.types.is_binary(kind) and not is_debezium:
        return _base64(kind)
    is_plain, read = _plainly(kind, is_debezium, is_key), value_reader(kind)

    def read_plain(value: Any) -> Any:
        if not is_plain(value) or value == _LEFT_OUT:
            raise UnfitValue(value, kind)
        return read(value)

    return read_plain


def _plainly(kind: pa.DataType, is_debezium: bool, is_key: bool) -> _Holds:
    """Whether a value can be read in one way only."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        # A number may be the days of a date; as a key it is a number.
        return lambda value: isinstance(value, str) or (_is_whole(value) and (is_key or not is_debezium))
    if pa.types.is_boolean(kind):
        return lambda value: isinstance(value, bool) or _is_whole(value)
    if pa.types.is_integer(kind):
        return lambda value: _is_whole(value) or (isinstance(value, str) and not is_debezium)
    if pa.types.is_floating(kind):
        return lambda value: isinstance(value, float | Decimal) or _is_whole(value)
    if pa.types.is_decimal(kind):
        return _is_exact if is_debezium else lambda value: isinstance(value, Decimal | str) or _is_whole(value)
    if pa.types.is_temporal(kind):
        return lambda value: isinstance(value, str)
    return lambda value: False


def _is_exact(value: Any) -> bool:
    """Whether it is the decimal of the source, to the last digit."""
    if isinstance(value, str):
        return "." in value  # no base64 has a point in it
    return (isinstance(value, Decimal) or _is_whole(value)) and len(Decimal(value).as_tuple().digits) <= _EXACT_DIGITS


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _base64(kind: pa.DataType) -> Read:
    convert = converter(kind)

    def read(value: Any) -> Any:
        try:
            return convert(value)
        except Mismatch:
            raise UnfitValue(value, kind) from None

    return read
