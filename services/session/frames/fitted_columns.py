"""A column of a frame as the type of a stream's column."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.errors import SqlError
from dovetail.changelog.formats import decimal_text
from dovetail.changelog.wording import type_words
from dovetail.sql.syntax.rules import Rules
from dovetail.sql.syntax.types import display

_INTEGERS = pa.decimal128(20, 0)
"""Has all integers of 64 bits."""
_SHOWN = 60
_MISFITS = (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError)


def fitted(column: pa.ChunkedArray, kind: pa.DataType, name: str) -> pa.ChunkedArray:
    """The same values as ``kind``; NULL stays NULL.

    Raises SqlError where a value would not be the same, with the first such row as frames count them, from 0: a number
    that would be rounded, a time that would lose its end, one of another unit than the type has.
    """
    if column.type == kind:
        return column
    try:
        _expect_a_meaning(column.type, kind)
        return _cast(column, kind)
    except _MISFITS as fault:
        raise _misfit(column, kind, name, fault) from None


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_string_view(column.type):
        column = pc.cast(column, pa.string())
    given = column.type
    if pa.types.is_decimal(kind) and pa.types.is_integer(given):
        # Arrow asks for room for the largest number of the type, whatever the numbers are.
        return pc.cast(pc.cast(column, _INTEGERS), kind)
    if pa.types.is_decimal(kind) and pa.types.is_floating(given):
        _expect_exact(column, kind)
    if pa.types.is_timestamp(kind) and kind.tz and _is_text(given):
        return _instants(column, kind)
    fit = decimal_text.cast(column, kind)
    if pa.types.is_floating(kind) and pa.types.is_floating(given):
        _expect_finite(column, fit)
    return fit


def _expect_a_meaning(given: pa.DataType, kind: pa.DataType) -> None:
    """Arrow casts by the bits where it can: a duration would be a number of nobody knows what."""
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if isinstance(given, pa.BaseExtensionType):
        meant = given.storage_type == kind
    else:
        meant = not (pa.types.is_temporal(given) and numeric) and not (pa.types.is_duration(given) and given != kind)
    if not meant:
        raise pa.ArrowTypeError("it does not say what such a value would be")
    _expect_no_more_fields(given, kind)


def _expect_no_more_fields(given: pa.DataType, kind: pa.DataType) -> None:
    """Arrow leaves out a field that the other struct does not have."""
    if pa.types.is_struct(given) and pa.types.is_struct(kind):
        more = sorted({field.name for field in given} - {field.name for field in kind})
        if more:
            raise pa.ArrowTypeError(f'it has a field "{more[0]}", which is not there')
        for field in given:
            _expect_no_more_fields(field.type, kind.field(field.name).type)
    elif pa.types.is_nested(given) and given.num_fields == kind.num_fields == 1:
        _expect_no_more_fields(given.field(0).type, kind.field(0).type)


def _expect_exact(column: pa.ChunkedArray, kind: pa.DataType) -> None:
    """Raises for a float that is not the decimal: neither to its last bit, nor in its shortest digits, as 9.99 is.

    A double is a whole number of 1 / 2^n: it has n digits behind the point, and no fewer.
    """
    values, digits = column.drop_null().to_numpy(), max(kind.scale, 0)
    whole = 2.0 ** (np.finfo(values.dtype).nmant + 1)
    with np.errstate(over="ignore", invalid="ignore"):
        bits = np.ldexp(values.astype(np.float64), digits)
        to_the_last_bit = bits == np.floor(bits)
        in_digits = (np.round(values, digits) == values) & (np.abs(values.astype(np.float64) * 10.0**digits) < whole)
    if (np.isfinite(values) & ~to_the_last_bit & ~in_digits).any():
        raise pa.ArrowInvalid("it would be rounded")


def _expect_finite(column: pa.ChunkedArray, fit: pa.ChunkedArray) -> None:
    if pc.any(pc.and_(pc.is_inf(fit), pc.invert(pc.is_inf(column)))).as_py():
        raise pa.ArrowInvalid(f"it is larger than any {display(fit.type, Rules.TIMEPLUS)}")


def _instants(column: pa.ChunkedArray, kind: pa.TimestampType) -> pa.ChunkedArray:
    """Texts all with a zone, or all without one, which are of UTC."""
    try:
        return pc.cast(column, kind)
    except pa.ArrowInvalid:
        return pc.cast(pc.cast(column, pa.timestamp(kind.unit)), kind)


def _misfit(column: pa.ChunkedArray, kind: pa.DataType, name: str, fault: Exception) -> SqlError:
    row = _first_misfit(column, kind)
    wanted, why = display(kind, Rules.TIMEPLUS), str(fault).splitlines()[0]
    if row is None:
        return SqlError(
            f"a column of {type_words(column.type)} does not fit column {name} {wanted}: {why}",
            where=f"column {name}",
            fix=f"make it one of {wanted} first",
        )
    return SqlError(
        f"{_shown(column, row)} does not fit column {name} {wanted}: {why}",
        where=f"column {name}, row {row} (the first is 0)",
        fix=_fix(column.type, kind),
    )


def _fix(given: pa.DataType, kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        digits = f"{kind.scale} digits behind the point"
        return (
            f"say how it is rounded: give decimal.Decimal, or texts, of {digits}; in polars"
            f" .cast(pl.Decimal({kind.precision}, {kind.scale})), in pandas .round({kind.scale}).astype(str)"
        )
    if pa.types.is_timestamp(given) and pa.types.is_timestamp(kind):
        return f'cut it first: .dt.floor("{kind.unit}") in pandas, .dt.truncate("1{kind.unit}") in polars'
    return f"correct the value, or cast the column to {display(kind, Rules.TIMEPLUS)} first"


def _first_misfit(column: pa.ChunkedArray, kind: pa.DataType) -> int | None:
    """By halves; None where it is not of a row, but of the type."""
    if not _fits(column.slice(0, 0), kind):
        return None
    low, high = 0, len(column)
    while high - low > 1:
        middle = (low + high) // 2
        if _fits(column.slice(low, middle - low), kind):
            low = middle
        else:
            high = middle
    return low


def _fits(column: pa.ChunkedArray, kind: pa.DataType) -> bool:
    try:
        _expect_a_meaning(column.type, kind)
        _cast(column, kind)
    except _MISFITS:
        return False
    return True


def _shown(column: pa.ChunkedArray, row: int) -> str:
    text = str(column[row])
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}.."


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
