"""Keys as text: for the names of entries in Redis, and for refreshes by prefix."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from dovetail.changelog.lookup import Key


def part_text(value: Any) -> str:
    """A value of a key as text; equal values give equal texts, so Decimal('1.50') and Decimal('1.5') are one key."""
    if isinstance(value, str):
        return value
    write = _WRITERS.get(type(value))
    return str(value) if write is None else write(value)


def key_text(key: Key) -> str:
    """The text of a key that a refresh by prefix is compared with: the parts of a composite key with ',' between."""
    return ",".join(map(part_text, key)) if isinstance(key, tuple) else part_text(key)


def _decimal_text(value: Decimal) -> str:
    # Not Decimal.normalize(), which rounds to 28 digits and would make two keys one.
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def _datetime_text(value: datetime) -> str:
    return (value if value.tzinfo is None else value.astimezone(UTC)).isoformat()


_WRITERS: dict[type, Callable[[Any], str]] = {
    bool: lambda value: str(int(value)),
    float: lambda value: repr(value + 0.0),
    Decimal: _decimal_text,
    datetime: _datetime_text,
    date: date.isoformat,
    time: time.isoformat,
    bytes: bytes.hex,
}
