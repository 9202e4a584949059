"""Values as RisingWave prints them, and lines in a form in which equal values are equal texts."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

_YEARS_OF_PYTHON = (OverflowError, ValueError)
_NUMBER = re.compile(r"(?<![\w.\-:+])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.:\-])")
_SECONDS = re.compile(r"(:\d\d)\.(\d*?)0*(?=\D|$)")
_DIGITS = 10
_WHOLE = Decimal(10) ** 40


def rows(table: pa.Table) -> list[list[str]]:
    """The rows of a table, each value as its text."""
    columns = [_texts(column) for column in table.columns]
    return [list(row) for row in zip(*columns, strict=True)]


def canonical(line: str) -> str:
    """Blanks as one and none behind ``,`` and ``:``, numbers of ten digits at most, without zeros at the end."""
    line = re.sub(r"\s*([,:])\s*", r"\1", " ".join(line.split()))
    line = _SECONDS.sub(lambda found: found[1] + (f".{found[2]}" if found[2] else ""), line)
    return _NUMBER.sub(lambda found: _number(found.group()), line)


def _number(shown: str) -> str:
    value = Decimal(shown)
    if value == 0:
        return "0"
    if "." in shown or "e" in shown.lower():
        value = Decimal(f"{value:.{_DIGITS - 1}e}")
    if value == value.to_integral_value() and abs(value) < _WHOLE:
        return str(int(value))
    return f"{value.normalize():e}"


def _texts(column: pa.ChunkedArray) -> list[str]:
    try:
        values = column.to_pylist()
    except _YEARS_OF_PYTHON:
        return _of_any_year(column)
    return [text(value, column.type) for value in values]


def _of_any_year(column: pa.ChunkedArray) -> list[str]:
    """Dates and times beyond the years that Python knows."""
    unit: Any = "D" if pa.types.is_date(column.type) else column.type.unit
    zone = "+00:00" if pa.types.is_timestamp(column.type) and column.type.tz is not None else ""
    numbers = column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64()).to_pylist()
    return ["NULL" if one is None else _year(str(np.datetime64(one, unit)), zone) for one in numbers]


def _year(shown: str, zone: str) -> str:
    before_christ = shown.startswith("-")
    year, rest = shown.lstrip("-").split("-", 1)
    number = 1 + int(year) if before_christ else int(year)
    rest = rest.replace("T", " ")
    rest = rest.rstrip("0").rstrip(".") if "." in rest else rest
    return f"{number:04d}-{rest}{zone}{' BC' if before_christ else ''}"


def text(value: Any, kind: pa.DataType, nested: bool = False) -> str:
    """A value of an Arrow type; ``nested``: within another, where an empty text needs no word for itself."""
    if value is None:
        return "NULL"
    for holds, shown in _BY_TYPE:
        if holds(kind):
            return shown(value, kind)
    if isinstance(value, Decimal):
        return format(value.normalize(), "f") if value.is_finite() else str(value)
    return str(value) if str(value) or nested else "(empty)"


def _float(value: float, kind: pa.DataType) -> str:
    shown = (str(np.float32(value)) if pa.types.is_float32(kind) else repr(float(value))).removesuffix(".0")
    return {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}.get(shown, shown)


def _moment(value: dt.datetime, kind: pa.DataType) -> str:
    shown = value.replace(tzinfo=None).isoformat(sep=" ")
    shown = shown.rstrip("0").rstrip(".") if "." in shown else shown
    return shown + ("+00:00" if kind.tz is not None else "")


def _interval(value: Any, _kind: pa.DataType) -> str:
    months, days, nanoseconds = value
    sign = -1 if months < 0 else 1
    years, months = divmod(abs(months), 12)
    counts = {"year": sign * years, "mon": sign * months, "day": days}
    parts = [f"{count} {unit}{'' if abs(count) == 1 else 's'}" for unit, count in counts.items() if count]
    if nanoseconds or not parts:
        seconds, micros = divmod(abs(nanoseconds) // 1000, 1_000_000)
        fraction = f".{micros:06d}".rstrip("0") if micros else ""
        clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction}"
        parts.append(f"-{clock}" if nanoseconds < 0 else clock)
    return " ".join(parts)


def _duration(value: dt.timedelta, kind: pa.DataType) -> str:
    return _interval((0, 0, value // dt.timedelta(microseconds=1) * 1000), kind)


def _list(value: list[Any], kind: pa.DataType) -> str:
    return "{" + ",".join(_element(one, kind.value_type) for one in value) + "}"


def _element(value: Any, kind: pa.DataType) -> str:
    shown = text(value, kind, nested=True)
    if value is None or pa.types.is_list(kind):
        return shown
    is_read_otherwise = isinstance(value, str) and shown.upper() == "NULL"
    return _quoted(shown, '\\"') if _needs_quotes(shown, "{}") or is_read_otherwise else shown


def _map(value: list[tuple[Any, Any]], kind: pa.DataType) -> str:
    pairs = (f"{text(key, kind.key_type, True)}:{text(item, kind.item_type, True)}" for key, item in value)
    return "{" + ",".join(pairs) + "}"


def _struct(value: dict[str, Any], kind: pa.DataType) -> str:
    return "(" + ",".join(_member(value[field.name], field.type) for field in kind) + ")"


def _member(value: Any, kind: pa.DataType) -> str:
    if value is None:
        return ""
    shown = text(value, kind, nested=True)
    return _quoted(shown, '""') if _needs_quotes(shown, "()") else shown


def _needs_quotes(shown: str, brackets: str) -> bool:
    return shown == "" or any(sign in f'{brackets},"\\' or sign.isspace() for sign in shown)


def _quoted(shown: str, quote: str) -> str:
    return '"' + shown.replace("\\", "\\\\").replace('"', quote) + '"'


def _is_bytes(kind: pa.DataType) -> bool:
    return any(holds(kind) for holds in (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary))


def _is_list(kind: pa.DataType) -> bool:
    return any(holds(kind) for holds in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list))


_BY_TYPE: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any, pa.DataType], str]], ...] = (
    (pa.types.is_boolean, lambda value, _: "t" if value else "f"),
    (pa.types.is_floating, _float),
    (pa.types.is_timestamp, _moment),
    (pa.types.is_interval, _interval),
    (pa.types.is_duration, _duration),
    (_is_bytes, lambda value, _: f"\\x{bytes(value).hex()}"),
    (_is_list, _list),
    (pa.types.is_map, _map),
    (pa.types.is_struct, _struct),
)
