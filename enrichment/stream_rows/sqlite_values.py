"""How values of each Arrow type stand in SQLite: equal values have one form, and come back exactly.

    bool, date, time, timestamp, integers   INTEGER (uint64 in two's complement)
    floats                                  REAL; NaN as the text 'nan'
    text, binary                            TEXT, BLOB
    decimal                                 TEXT: the digits of the value as a whole number of its last place
    list, struct, map                       TEXT: JSON

Columns are declared without a type, so SQLite converts nothing of its own accord.
"""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import orjson
import pyarrow as pa

from dovetail.changelog.errors import InternalError
from dovetail.changelog.formats.json_types import converter

Stored = int | float | str | bytes | None

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001
_EPOCH_DAY = _EPOCH.toordinal()
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_TICK = dt.timedelta(microseconds=1)
_WIDE = Context(prec=100)
_INT64 = 2**63


@dataclass(frozen=True)
class SqliteCodec:
    """Values of one Arrow type, in the form of ``to_pylist``, to and from SQLite.

    column   a whole column
    key      a value that is looked up, of any type of the same family; None: no value of the column equals it
    decode   what SQLite gives, not NULL; None: as it is
    """

    column: Callable[[pa.ChunkedArray], Sequence[Stored]]
    key: Callable[[Any], Stored]
    decode: Callable[[Any], Any] | None = None


def sqlite_codec(kind: pa.DataType) -> SqliteCodec:
    for is_of, build in _BUILDERS:
        if is_of(kind):
            return build(kind)
    raise InternalError(f"{kind} has no form in SQLite")


def _plain(kind: pa.DataType) -> SqliteCodec:
    return SqliteCodec(lambda column: column.to_pylist(), lambda value: value)


def _boolean(kind: pa.DataType) -> SqliteCodec:
    return SqliteCodec(lambda column: column.cast(pa.int8()).to_pylist(), _whole, bool)


def _integer(kind: pa.DataType) -> SqliteCodec:
    return SqliteCodec(lambda column: column.to_pylist(), _whole)


def _unsigned_64(kind: pa.DataType) -> SqliteCodec:
    def column(values: pa.ChunkedArray) -> Sequence[Stored]:
        return [value for chunk in values.chunks for value in chunk.view(pa.int64()).to_pylist()]

    def key(value: Any) -> Stored:
        whole = _exact(value)
        if whole is None or not 0 <= whole < 2 * _INT64:
            return None
        return whole - 2 * _INT64 if whole >= _INT64 else whole

    return SqliteCodec(column, key, lambda stored: stored + 2 * _INT64 if stored < 0 else stored)


def _exact(value: Any) -> int | None:
    """The whole number that ``value`` is, if it is one."""
    try:
        whole = int(value)
    except (ValueError, OverflowError):
        return None
    return whole if whole == value else None


def _whole(value: Any) -> Stored:
    whole = _exact(value)
    return whole if whole is not None and -_INT64 <= whole < _INT64 else None


def _float(kind: pa.DataType) -> SqliteCodec:
    def real(value: Any) -> Stored:
        if value is None:
            return None
        return float(value) if value == value else "nan"

    return SqliteCodec(lambda column: [real(value) for value in column.to_pylist()], real, float)


def _decimal(kind: pa.DataType) -> SqliteCodec:
    def digits(value: Any) -> Stored:
        if value is None:
            return None
        scaled = _WIDE.scaleb(Decimal(value), kind.scale)
        return str(int(scaled)) if scaled == scaled.to_integral_value(context=_WIDE) else None

    def decode(stored: str) -> Decimal:
        return _WIDE.scaleb(Decimal(stored), -kind.scale)

    return SqliteCodec(lambda column: [digits(value) for value in column.to_pylist()], digits, decode)


def _date(kind: pa.DataType) -> SqliteCodec:
    def day(value: Any) -> Stored:
        if isinstance(value, dt.datetime):
            return value.toordinal() - _EPOCH_DAY if value.time() == dt.time() else None
        return int(value.toordinal()) - _EPOCH_DAY

    return SqliteCodec(
        lambda column: column.cast(pa.int32()).to_pylist(),
        day,
        lambda stored: dt.date.fromordinal(stored + _EPOCH_DAY),
    )


def _timestamp(kind: pa.DataType) -> SqliteCodec:
    unit = _MICROSECONDS[kind.unit]
    epoch = _EPOCH.replace(tzinfo=dt.UTC) if kind.tz else _EPOCH

    def ticks(value: Any) -> Stored:
        instant = value if isinstance(value, dt.datetime) else dt.datetime.combine(value, dt.time())
        if instant.tzinfo is not None:
            instant = instant.astimezone(dt.UTC).replace(tzinfo=None)
        count, rest = divmod((instant - _EPOCH) // _TICK, unit)
        return None if rest else count

    return SqliteCodec(
        lambda column: column.cast(pa.int64()).to_pylist(),
        ticks,
        lambda stored: epoch + dt.timedelta(microseconds=stored * unit),
    )


def _time(kind: pa.DataType) -> SqliteCodec:
    unit = _MICROSECONDS[kind.unit]
    carrier = pa.int64() if kind.bit_width == 64 else pa.int32()

    def ticks(value: dt.time) -> Stored:
        since = dt.timedelta(hours=value.hour, minutes=value.minute, seconds=value.second)
        count, rest = divmod((since + dt.timedelta(microseconds=value.microsecond)) // _TICK, unit)
        return None if rest else count

    return SqliteCodec(
        lambda column: column.cast(carrier).to_pylist(),
        ticks,
        lambda stored: (_EPOCH + dt.timedelta(microseconds=stored * unit)).time(),
    )


def _nested(kind: pa.DataType) -> SqliteCodec:
    """JSON as ``changelog.formats`` reads it, then in the form of ``to_pylist``."""
    convert = converter(kind)

    def text(value: Any) -> Stored:
        if value is None:
            return None
        (plain,) = pa.array([value], kind).to_pylist(maps_as_pydicts="strict")
        return orjson.dumps(plain, default=_member, option=orjson.OPT_NON_STR_KEYS).decode()

    def decode(stored: str) -> Any:
        return pa.array([convert(orjson.loads(stored))], kind)[0].as_py()

    return SqliteCodec(lambda column: [text(value) for value in column.to_pylist()], text, decode)


def _member(value: Any) -> Any:
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(f"{type(value).__name__} has no form in JSON")


_BUILDERS: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.DataType], SqliteCodec]], ...] = (
    (pa.types.is_boolean, _boolean),
    (pa.types.is_uint64, _unsigned_64),
    (pa.types.is_integer, _integer),
    (pa.types.is_floating, _float),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_string, _plain),
    (pa.types.is_binary, _plain),
    (pa.types.is_date32, _date),
    (pa.types.is_timestamp, _timestamp),
    (pa.types.is_time, _time),
    (pa.types.is_nested, _nested),
)
