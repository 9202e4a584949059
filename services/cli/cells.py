"""Values as a person reads them."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

NULL = "NULL"
_WIDEST = 60
_PRECISIONS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds"}
"""Digits by the unit of a type, as ``datetime.isoformat`` calls them."""
_RIGHT = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)


def texts(rows: pa.Table) -> list[list[str]]:
    """Row by row, the text of each value; a time with the digits of its column."""
    columns = [_of_column(column) for column in rows.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def _of_column(column: pa.ChunkedArray) -> list[str]:
    precision = _PRECISIONS.get(column.type.unit, "") if pa.types.is_timestamp(column.type) else ""
    if not precision:
        return [text(value) for value in column.to_pylist()]
    return [NULL if value is None else instant(value, precision) for value in column.to_pylist()]


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


def instant(value: datetime, precision: str = "") -> str:
    """``2026-01-31 12:00:00.000``: in the precision given, else milliseconds, or microseconds where there are any."""
    precision = precision or ("microseconds" if value.microsecond % 1000 else "milliseconds")
    return value.replace(tzinfo=None).isoformat(sep=" ", timespec=precision)


def beginning(value: str) -> str:
    """So much of a text as a column of a listing has room for, in one line."""
    line = " ".join(value.split())
    return line if len(line) <= _WIDEST else line[: _WIDEST - 2] + ".."


def to_the_right(kind: pa.DataType) -> bool:
    """Whether a column of this type is set flush right: numbers."""
    return any(is_kind(kind) for is_kind in _RIGHT)
