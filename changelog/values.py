"""One form for each value: what is equal has equal bytes.

-0.0 is 0.0, and every NaN is one NaN; within lists, structs and maps too. Rows take this form when they come in, and
when expressions have computed them, so that what leaves is written alike however it came. Equality, order, grouping and
hashing go by the same rule for any rows: NaN equals NaN and is greater than all numbers, NULL equals itself where rows
are grouped, counted and taken back, and nothing as a join key.

Source: the total order of IEEE 754 as DuckDB and PostgreSQL have it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Floats = npt.NDArray[np.floating[Any]]


def holds_floats(kind: pa.DataType) -> bool:
    """Whether values of the type are floats or have floats within."""
    if pa.types.is_nested(kind):
        return any(holds_floats(kind.field(place).type) for place in range(kind.num_fields))
    return bool(pa.types.is_floating(kind))


def normalised(rows: pa.Table) -> pa.Table:
    """``rows`` with every value in its one form; the table itself where no column holds floats."""
    for place, field in enumerate(rows.schema):
        if holds_floats(field.type):
            column = rows.column(place)
            parts = [normalised_array(chunk) for chunk in column.chunks]
            rows = rows.set_column(place, field, pa.chunked_array(parts, field.type))
    return rows


def normalised_array(values: pa.Array) -> pa.Array:
    """The same values, each in its one form; the array itself where they have it already."""
    if not holds_floats(values.type):
        return values
    if pa.types.is_nested(values.type):
        plain = all(_are_normal(numbers) for numbers in _numbers_within(values))
        return values if plain else pa.array([_normal(value) for value in values.to_pylist()], values.type)
    numbers = numbers_of(values)
    if _are_normal(numbers):
        return values
    nulls = values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
    return pa.array(normal_numbers(numbers), values.type, mask=nulls)


def normal_numbers(numbers: Floats) -> Floats:
    """Floats in their one form."""
    # The sum of -0.0 and 0.0 is 0.0.
    sums: Floats = numbers + numbers.dtype.type(0)
    unordered = np.isnan(sums)
    if unordered.any():
        sums[unordered] = np.nan
    return sums


def numbers_of(values: pa.Array) -> Floats:
    """An array of floats as numbers, 0 for NULL."""
    filled = values.fill_null(0.0) if values.null_count else values
    numbers: Floats = filled.to_numpy(zero_copy_only=False)
    return numbers


def _are_normal(numbers: Floats) -> bool:
    return not ((numbers == 0) & np.signbit(numbers)).any() and not np.isnan(numbers).any()


def _numbers_within(values: pa.Array) -> Iterator[Floats]:
    kind = values.type
    if pa.types.is_floating(kind):
        yield numbers_of(values)
    elif pa.types.is_nested(kind) and holds_floats(kind):
        for part in _parts(values):
            yield from _numbers_within(part)


def _parts(values: pa.Array) -> list[pa.Array]:
    if pa.types.is_map(values.type):
        return [values.keys, values.items]
    inner = values.flatten()
    return inner if isinstance(inner, list) else [inner]


def _normal(value: Any) -> Any:
    if isinstance(value, float):
        return value + 0.0
    if isinstance(value, list | tuple):
        return type(value)(_normal(one) for one in value)
    if isinstance(value, dict):
        return {name: _normal(one) for name, one in value.items()}
    return value
