"""Values as a person reads them."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

NULL = "NULL"
_WIDEST = 60
_RIGHT = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)


def texts(rows: pa.Table) -> list[list[str]]:
    """Row by row, the text of each value."""
    columns = [[text(value) for value in column.to_pylist()] for column in rows.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def text(value: Any) -> str:
    """``NULL``; instants in UTC with the fraction they have; bytes in hexadecimal; lists and structs in brackets."""
    match value:
        case None:
            return NULL
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:.15g}"
        case Decimal():
            return f"{value:f}"
        case datetime():
            return instant(value)
        case bytes():
            return value.hex()
        case list() | tuple() | dict():
            return _nested(value)
        case _:
            return str(value)


def _nested(value: list[Any] | tuple[Any, ...] | dict[str, Any]) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {text(element)}" for name, element in value.items()) + "}"
    inside = ", ".join(text(element) for element in value)
    return f"[{inside}]" if isinstance(value, list) else f"({inside})"


def instant(value: datetime) -> str:
    """``2026-01-31 12:00:00.000``: milliseconds, or microseconds where there are any."""
    precision = "microseconds" if value.microsecond % 1000 else "milliseconds"
    return value.replace(tzinfo=None).isoformat(sep=" ", timespec=precision)


def beginning(value: str) -> str:
    """So much of a text as a column of a listing has room for, in one line."""
    line = " ".join(value.split())
    return line if len(line) <= _WIDEST else line[: _WIDEST - 2] + ".."


def to_the_right(kind: pa.DataType) -> bool:
    """Whether a column of this type is set flush right: numbers."""
    return any(is_kind(kind) for is_kind in _RIGHT)
