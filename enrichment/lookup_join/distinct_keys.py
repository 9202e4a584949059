"""The distinct keys of a batch: each is asked once, however many rows carry it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.formats import decimal_text
from dovetail.changelog.lookup import Key
from dovetail.changelog.rows import Positions


@dataclass(frozen=True, slots=True)
class DistinctKeys:
    """``keys[codes[i]]`` is the key of row i; the code ``len(keys)`` stands for a key with a NULL in it."""

    keys: list[Key]
    codes: Positions


def distinct_keys(rows: pa.Table, names: Sequence[str], types: Sequence[pa.DataType | None]) -> DistinctKeys:
    """The keys of ``rows`` over the columns ``names``, as values of ``types`` (None: of the column's own type).

    A value that its type cannot hold equals no value of the type: it counts as NULL.
    """
    columns = [_distinct(rows.column(name), kind) for name, kind in zip(names, types, strict=True)]
    if len(columns) == 1:
        return DistinctKeys(columns[0].values.to_pylist(), columns[0].codes)
    return _tuples(columns, rows.num_rows)


@dataclass(frozen=True, slots=True)
class _Column:
    """``values`` are distinct, without NULL; the code ``len(values)`` stands for NULL."""

    values: pa.Array
    codes: Positions


def _distinct(column: pa.ChunkedArray, kind: pa.DataType | None) -> _Column:
    encoded = (column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()).dictionary_encode()
    values = encoded.dictionary
    codes = encoded.indices.fill_null(len(values)).to_numpy(zero_copy_only=False).astype(np.int64)
    if kind is None or values.type == kind:
        return _Column(values, codes)
    fitted = _fitted(values, kind)
    kept = fitted.is_valid().to_numpy(zero_copy_only=False)
    renumbered = np.full(len(values) + 1, kept.sum(), dtype=np.int64)
    renumbered[:-1][kept] = np.arange(kept.sum())
    return _Column(fitted.drop_null(), renumbered[codes])


def _fitted(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """``values`` as ``kind``; those that change on the way there and back are NULL."""
    try:
        cast = _cast(values, kind)
    except pa.ArrowInvalid:
        # Some value cannot be cast at all; the others can.
        if len(values) == 1:
            return pa.nulls(1, kind)
        return pa.concat_arrays([_fitted(values.slice(place, 1), kind) for place in range(len(values))])
    same = pc.equal(pc.cast(cast, values.type, safe=False), values)
    return pc.if_else(same, cast, pa.scalar(None, kind))


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Arrow goes by the types of whole numbers, not by their values, when it refuses to make decimals of them."""
    if pa.types.is_integer(values.type) and pa.types.is_decimal(kind):
        return pa.array(values.to_pylist(), kind)
    return decimal_text.cast(values, kind, safe=False)


def _tuples(columns: Sequence[_Column], count: int) -> DistinctKeys:
    """Arrow has no dictionaries of tuples: the codes of the columns are made one number, and that is told apart."""
    number = np.zeros(count, dtype=np.int64)
    valid = np.ones(count, dtype=np.bool_)
    for column in columns:
        valid &= column.codes < len(column.values)
        # Dense again after each column: the product of two stays far below 2^63.
        _, number = np.unique(number * (len(column.values) + 1) + column.codes, return_inverse=True)
    present = np.flatnonzero(valid)
    _, first, inverse = np.unique(number[present], return_index=True, return_inverse=True)
    chosen = present[first]
    values = [column.values.take(pa.array(column.codes[chosen])).to_pylist() for column in columns]
    codes = np.full(count, len(first), dtype=np.int64)
    codes[present] = inverse
    return DistinctKeys(list(zip(*values, strict=True)), codes)
