"""The times that a row can hold: those of the years 1 to 9999 in UTC, and of the day those before 24:00.

Any number of 32 or 64 bits is a date or an instant to Arrow, and DuckDB has infinite ones and years before Christ.
Beyond this range what writes rows has no form for them, ends in a panic, or writes what no reader takes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Mask = npt.NDArray[np.bool_]
RANGE = "0001-01-01 to 9999-12-31 in UTC, or of 00:00 to 24:00"
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31, in days since 1970."""
_DAY_S = 86_400
_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


def holds_times(kind: pa.DataType) -> bool:
    """Whether values of the type are times or have times within."""
    if pa.types.is_nested(kind):
        return any(holds_times(kind.field(place).type) for place in range(kind.num_fields))
    return bool(pa.types.is_temporal(kind)) and _bounds(kind) is not None


def outside(values: pa.Array | pa.ChunkedArray) -> Mask | None:
    """Which of ``values`` are times outside of the range or hold one; None where none is or does."""
    if not holds_times(values.type):
        return None
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    found = [_outside(chunk) for chunk in chunks]
    if all(mask is None or not mask.any() for mask in found):
        return None
    pairs = zip(chunks, found, strict=True)
    return np.concatenate([np.zeros(len(chunk), np.bool_) if mask is None else mask for chunk, mask in pairs])


def bounded(values: pa.ChunkedArray) -> tuple[pa.ChunkedArray, int]:
    """``values`` with NULL for those outside of the range, and how many these are."""
    beyond = outside(values)
    if beyond is None:
        return values, 0
    return values.take(pa.array(np.arange(len(values)), mask=beyond)), int(beyond.sum())


def _bounds(kind: pa.DataType) -> tuple[int, int] | None:
    """The least and the greatest number of a type; None where all are good: nanoseconds end in 1677 and 2262."""
    if pa.types.is_date32(kind):
        return _FIRST_DAY, _LAST_DAY
    if pa.types.is_date64(kind):
        return _FIRST_DAY * _DAY_S * 1_000, (_LAST_DAY + 1) * _DAY_S * 1_000 - 1
    if pa.types.is_time(kind):
        return 0, _DAY_S * _PER_SECOND[kind.unit] - 1
    if pa.types.is_timestamp(kind) and kind.unit != "ns":
        per_day = _DAY_S * _PER_SECOND[kind.unit]
        return _FIRST_DAY * per_day, (_LAST_DAY + 1) * per_day - 1
    return None


def _outside(values: pa.Array) -> Mask | None:
    if pa.types.is_nested(values.type):
        return _holding(values)
    bounds = _bounds(values.type)
    if bounds is None or len(values) == values.null_count:
        return None
    numbers = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    found = pc.min_max(numbers)
    if bounds[0] <= found["min"].as_py() and found["max"].as_py() <= bounds[1]:
        return None
    beyond = pc.or_(pc.less(numbers, bounds[0]), pc.greater(numbers, bounds[1]))
    mask: Mask = beyond.fill_null(False).to_numpy(zero_copy_only=False)
    return mask


def _holding(values: pa.Array) -> Mask:
    """Which of nested values hold a time outside of the range."""
    mask = np.zeros(len(values), dtype=np.bool_)
    for owners, part in _parts(values):
        beyond = outside(part)
        if beyond is not None:
            mask[owners[beyond]] = True
    return mask


def _parts(values: pa.Array) -> Iterator[tuple[np.ndarray, pa.Array]]:
    """The values within, and for each the position of the one that holds it."""
    if pa.types.is_struct(values.type):
        yield from ((np.arange(len(values)), part) for part in values.flatten())
    elif pa.types.is_map(values.type):
        offsets = values.offsets.to_numpy()
        owners = np.repeat(np.arange(len(values)), np.diff(offsets))
        yield from ((owners, part.slice(offsets[0], len(owners))) for part in (values.keys, values.items))
    elif any(is_list(values.type) for is_list in _LISTS):
        yield pc.list_parent_indices(values).to_numpy(), pc.list_flatten(values)
