"""Rows as JSON objects, members in the order of the columns.

integer        all digits
float          shortest digits that read back the same; NaN and the infinities are null
decimal        a number with all digits of its scale
timestamp      '2026-01-31 12:00:00.000', in UTC, with the fraction of its unit (none for seconds)
date, time     '2026-01-31', '12:00:00'
binary         base64
list, struct   array, object; times inside them in ISO 8601 with ``T``
map            object, the keys as texts
"""

from __future__ import annotations

import base64
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from dovetail.changelog.formats.panics import panics_as_errors

if TYPE_CHECKING:
    import polars as pl

_FRACTION = {"s": "", "ms": "%.3f", "us": "%.6f", "ns": "%.9f"}


def objects(rows: pa.Table) -> pl.Series:
    """A JSON object per row, as text."""
    with panics_as_errors():
        return _objects(rows)


def _objects(rows: pa.Table) -> pl.Series:
    import polars as pl  # noqa: PLC0415 - who only names the format, in a statement, waits for no library

    if rows.num_columns == 0:
        return pl.Series(["{}"] * rows.num_rows, dtype=pl.String)
    parts: list[pl.Series] = []
    plain: dict[str, pl.Series] = {}
    for name in rows.column_names:
        column = rows.column(name)
        text = _own_text(column)
        if text is None:
            plain[name] = _plain(column)
            continue
        if plain:
            parts.append(_members(plain))
            plain = {}
        parts.append(pl.select(pl.lit(orjson.dumps(name).decode() + ":") + text).to_series())
    if not parts:
        return pl.DataFrame(plain).to_struct("value").struct.json_encode()
    if plain:
        parts.append(_members(plain))
    joined = pl.concat_str(parts, separator=",")
    return pl.select(pl.lit("{") + joined + "}").to_series()


def _members(columns: dict[str, pl.Series]) -> pl.Series:
    """The inside of the objects."""
    import polars as pl  # noqa: PLC0415

    return pl.DataFrame(columns).to_struct("value").struct.json_encode().str.head(-1).str.slice(1)


def _plain(column: pa.ChunkedArray) -> pl.Series:
    """The column in a form whose JSON by polars is the one wanted."""
    import polars as pl  # noqa: PLC0415

    series = pl.Series(column)
    if pa.types.is_timestamp(column.type):
        return series.dt.strftime("%Y-%m-%d %H:%M:%S" + _FRACTION[column.type.unit])
    if pa.types.is_binary(column.type):
        return series.bin.encode("base64")
    return series


def _own_text(column: pa.ChunkedArray) -> pl.Series | None:
    """The JSON of each value for types that polars would write otherwise, or not at all; None for all others."""
    import polars as pl  # noqa: PLC0415

    if pa.types.is_decimal128(column.type):
        return pl.Series(column).cast(pl.String).fill_null("null")
    if _is_awkward(column.type):
        values = column.to_pylist(maps_as_pydicts="strict")
        return pl.Series([_dumped(value) for value in values], dtype=pl.String)
    return None


def _is_awkward(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind) or pa.types.is_decimal256(kind):
        return True
    inner = [kind.field(index).type for index in range(kind.num_fields)]
    return any(_is_awkward(one) or pa.types.is_binary(one) or pa.types.is_decimal(one) for one in inner)


def _dumped(value: Any) -> str:
    return orjson.dumps(value, default=_default, option=orjson.OPT_NON_STR_KEYS).decode()


def _default(value: Any) -> Any:
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} has no form in JSON")
