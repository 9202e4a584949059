"""Values of any Arrow type as whole numbers in the same order.

A **time** is the number behind a timestamp or a date, or the whole number itself: one can count with it, and bounds are
drawn at it. An **ordinal** only compares, and is there for texts too. A **rank** compares the values of two columns.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.event_times import not_behind
from dovetail.changelog.rows import Mask
from dovetail.changelog.values import normal_numbers

Times = npt.NDArray[np.int64]

NEVER = int(np.iinfo(np.int64).max)
"""The order of NULL."""
LATEST = NEVER - 1
"""The greatest time; a number beyond it counts as it."""
EARLIEST = int(np.iinfo(np.int64).min)
"""Before all times: the least number counts as the next one."""


# -- times


def times_of(column: pa.ChunkedArray) -> Times:
    """The order of each row of a column of times or numbers; without a copy of timestamps and 64-bit integers.

    The order of a float is no number to count with: its neighbours are the next floats. NaN is above all numbers. Of
    decimals the digits count; one that has more than 64 bits has no time, as NULL has none: it would tie with others.
    """
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if pa.types.is_temporal(array.type):
        array = array.view(pa.int64() if array.type.bit_width == 64 else pa.int32())
    elif pa.types.is_uint64(array.type):
        numbers = (array.fill_null(0) if array.null_count else array).to_numpy(zero_copy_only=False)
        array = pa.array(np.minimum(_signed(numbers), LATEST - 1) + 1, mask=_nulls(array))
    elif pa.types.is_floating(array.type):
        numbers = array.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
        array = pa.array(_of_floats(numbers), mask=_nulls(array))
    elif pa.types.is_decimal(array.type):
        array = _of_decimals(array)
    array = array.cast(pa.int64())
    values: Times = (array.fill_null(EARLIEST) if array.null_count else array).to_numpy(zero_copy_only=False)
    if len(values) and (values.max() > LATEST or values.min() == EARLIEST):
        values = np.clip(values, EARLIEST + 1, LATEST)
    return values if not array.null_count else np.where(array.is_null().to_numpy(zero_copy_only=False), NEVER, values)


def bound_of(watermark: int, kind: pa.DataType) -> int:
    """``watermark`` as an order of a column of type ``kind``: what is behind the one is less than the other."""
    return int(times_of(pa.chunked_array([pa.array([not_behind(watermark, kind)])]))[0])


def bound_after(watermark: int, kind: pa.DataType) -> int:
    """The order that what is at ``watermark`` or before is less than: to the unit of ``kind``, not to the ms."""
    return min(bound_of(watermark, kind) + 1, bound_of(watermark + 1, kind))


def shifted(times: Times, shift: int) -> Times:
    """``times + shift``, kept between EARLIEST and LATEST where the sum would be beyond them."""
    if shift >= 0:
        return np.minimum(times, LATEST - shift) + shift
    return np.maximum(times, EARLIEST - shift) + shift


def beyond(times: Times, later: bool) -> Times:
    """The next time after each (``later``), or the last before it; that of NULL says nothing."""
    return np.where(times == NEVER, NEVER, times + 1) if later else times - 1


# -- ordinals and ranks


def is_ordered(kind: pa.DataType) -> bool:
    """Whether values of the type have a least and a greatest one."""
    scalar = pa.types.is_primitive(kind) and not pa.types.is_interval(kind)
    return scalar or pa.types.is_decimal128(kind) or pa.types.is_string(kind) or pa.types.is_binary(kind)


def ordinals(values: pa.Array) -> Times:
    """An int64 for each value that is never less where the value is greater; unequal values may share one.

    Texts: their first eight bytes. Decimals: the nearest double.
    """
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _of_text(values.cast(pa.large_binary()))
    if pa.types.is_decimal(kind) or pa.types.is_floating(kind):
        return _of_floats(values.cast(pa.float64()).to_numpy(zero_copy_only=False))
    if pa.types.is_uint64(kind):
        return _signed(values.to_numpy(zero_copy_only=False))
    if pa.types.is_temporal(kind):
        values = values.view(pa.int64() if kind.bit_width == 64 else pa.int32())
    whole: Times = np.minimum(values.cast(pa.int64()).to_numpy(zero_copy_only=False), LATEST)
    return whole


def ranks_of(left: pa.ChunkedArray, right: pa.ChunkedArray) -> tuple[Times, Times]:
    """Whole numbers in the order of the values of two columns, in the type of the left; what is there for NULL says
    nothing."""
    kind = left.type
    if kind == right.type and (pa.types.is_timestamp(kind) or pa.types.is_signed_integer(kind)):
        return times_of(left), times_of(right)
    values = pa.chunked_array([*left.chunks, *right.cast(kind).chunks], kind)
    if pa.types.is_floating(kind):
        numbers = ordinals(values.combine_chunks())
        return numbers[: len(left)], numbers[len(left) :]
    ranks: Times = pc.rank(values, tiebreaker="dense").to_numpy().astype(np.int64)
    return ranks[: len(left)], ranks[len(left) :]


def sortable(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column that Arrow sorts in the order of ``values``: by itself it puts NaN beside NULL, at either end."""
    if not pa.types.is_floating(values.type):
        return values
    array = values.combine_chunks()
    return pa.chunked_array([pa.array(ordinals(array), mask=_nulls(array))])


# -- by type


def _of_floats(values: npt.NDArray[np.float64]) -> Times:
    """The bits of a float grow with it, those of a negative one against it; NaN is above all, -0.0 is 0.0."""
    bits = normal_numbers(values).view(np.int64)
    ordered: Times = bits ^ ((bits >> 63) & np.int64(np.iinfo(np.int64).max))
    return ordered


def _of_decimals(array: pa.Array) -> pa.Array:
    words = np.frombuffer(array.buffers()[1], dtype="<i8")[2 * array.offset : 2 * (array.offset + len(array))]
    low, high = words[::2], words[1::2]
    timeless = (high != low >> 63) | (False if array.null_count == 0 else _nulls(array))
    return pa.array(low, mask=timeless)


def _of_text(values: pa.LargeBinaryArray) -> Times:
    count = len(values)
    _, offsets_buffer, content = values.buffers()
    if count == 0:
        return np.zeros(0, dtype=np.int64)
    offsets = np.frombuffer(offsets_buffer, dtype=np.int64)[values.offset : values.offset + count + 1]
    size = int(offsets[-1])
    padded = np.zeros(size + 8, dtype=np.uint8)
    if content is not None:
        padded[:size] = np.frombuffer(content, dtype=np.uint8)[:size]
    words = np.ndarray((size + 1,), dtype=">u8", buffer=padded.data, strides=(1,))[offsets[:-1]].astype(np.uint64)
    spare = (8 - np.clip(np.diff(offsets), 1, 8)).astype(np.uint64) * np.uint64(8)
    # The word of an empty text is that of what follows it.
    words = np.where(np.diff(offsets) == 0, np.uint64(0), (words >> spare) << spare)
    return _signed(words)


def _signed(words: npt.NDArray[np.uint64]) -> Times:
    """int64 in the same order."""
    signed: Times = np.minimum((words ^ np.uint64(1 << 63)).view(np.int64), LATEST)
    return signed


def _nulls(array: pa.Array) -> Mask | None:
    return array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
