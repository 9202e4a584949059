"""Small pieces of relational work on Arrow tables: equality and grouping of rows, ranges, padding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from changelog.hashing import row_hashes

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def expand(low: Positions, high: Positions) -> tuple[Positions, Positions]:
    """All pairs (i, p) with ``low[i] <= p < high[i]``, ordered by i, then p."""
    counts = high - low
    owners = np.repeat(np.arange(len(counts)), counts)
    firsts = np.repeat(low - (np.cumsum(counts) - counts), counts)
    return owners, firsts + np.arange(len(owners))


def equal_rows(left: pa.Table, right: pa.Table, pairs: Sequence[tuple[str, str]], null_safe: Sequence[bool]) -> Mask:
    """Row by row, whether ``left`` and ``right`` agree on each pair of columns; NULL equals NULL where null-safe."""
    agree = np.ones(left.num_rows, dtype=np.bool_)
    for (left_name, right_name), safe in zip(pairs, null_safe, strict=True):
        agree &= _equal(left.column(left_name), right.column(right_name), safe)
    return agree


def _equal(left: pa.ChunkedArray, right: pa.ChunkedArray, null_safe: bool) -> Mask:
    if pa.types.is_nested(left.type):
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return np.fromiter((a == b and (null_safe or a is not None) for a, b in pairs), np.bool_, len(left))
    if not left.null_count and not right.null_count:
        equal: Mask = (
            pc.equal(left, right).to_numpy(zero_copy_only=False) if _by_arrow(left.type) else _values_equal(left, right)
        )
        return equal
    same = pc.fill_null(pc.equal(left, right), False)
    if null_safe:
        same = pc.or_(same, pc.and_(pc.is_null(left), pc.is_null(right)))
    mask: Mask = same.to_numpy()
    return mask


def _by_arrow(kind: pa.DataType) -> bool:
    return not (pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _values_equal(left: pa.ChunkedArray, right: pa.ChunkedArray) -> Mask:
    mask: Mask = left.to_numpy() == right.to_numpy()
    return mask


def groups_of_equal(rows: pa.Table) -> tuple[Positions, Positions]:
    """Positions of ``rows``, equal rows next to each other, and where each group starts.

    NULL equals NULL. Rows are grouped by hash; rows of one hash that differ after all are told apart by comparison.
    """
    hashes = row_hashes(rows, rows.column_names)
    order = np.argsort(hashes)
    sorted_hashes = hashes[order]
    alike = np.flatnonzero(sorted_hashes[1:] == sorted_hashes[:-1]) + 1
    pairs = [(name, name) for name in rows.column_names]
    same = equal_rows(
        rows.take(pa.array(order[alike])), rows.take(pa.array(order[alike - 1])), pairs, [True] * len(pairs)
    )
    if not same.all():
        return _groups_by_value(rows)
    starts = np.ones(rows.num_rows, dtype=np.bool_)
    starts[alike] = False
    return order, np.flatnonzero(starts)


def numbered(rows: pa.Table) -> tuple[Positions, Positions]:
    """A number for each row, from 0 on, the same for equal rows only, and the position of one row of each number."""
    order, starts = groups_of_equal(rows)
    numbers = np.empty_like(order)
    numbers[order] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(order))))
    return numbers, order[starts]


def _groups_by_value(rows: pa.Table) -> tuple[Positions, Positions]:
    """As ``groups_of_equal``, row by row: for the rare batch in which two different rows share a hash."""
    members: dict[str, list[int]] = {}
    for position, row in enumerate(zip(*[column.to_pylist() for column in rows.columns], strict=True)):
        members.setdefault(repr(row), []).append(position)
    sizes = np.array([len(positions) for positions in members.values()], dtype=np.int64)
    order = np.array([position for positions in members.values() for position in positions], dtype=np.int64)
    return order, np.cumsum(sizes) - sizes


def allotted(owners: Positions, available: npt.NDArray[Any], wanted: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """How much of each position its owner takes: ``wanted[owner]`` in all, from the first positions first."""
    order = np.argsort(owners, kind="stable")
    sorted_owners, counts = owners[order], available[order]
    through = np.cumsum(counts)
    first = np.searchsorted(sorted_owners, sorted_owners, "left")
    before = through - counts - (through[first] - counts[first])
    taken = np.empty_like(available)
    taken[order] = np.clip(wanted[sorted_owners] - before, 0, counts)
    return taken


def numpy_column(rows: pa.Table, name: str) -> npt.NDArray[Any]:
    """A column without NULLs as an array, without a copy where Arrow allows it."""
    values: npt.NDArray[Any] = rows.column(name).to_numpy()
    return values


def any_null(rows: pa.Table, columns: Sequence[str]) -> Mask:
    """Row by row, whether one of ``columns`` is NULL."""
    found = np.zeros(rows.num_rows, dtype=np.bool_)
    for name in columns:
        column = rows.column(name)
        if column.null_count:
            found |= column.is_null().to_numpy()
    return found


def where(rows: pa.Table, mask: Mask) -> pa.Table:
    """The rows for which ``mask`` holds; the table itself when all do."""
    return rows if mask.all() else rows.take(pa.array(np.flatnonzero(mask)))


def side_by_side(left: pa.Table, right: pa.Table) -> pa.Table:
    """The columns of ``left``, then those of ``right``; equal numbers of rows, no common name."""
    columns = [*left.columns, *right.columns]
    return pa.Table.from_arrays(columns, schema=pa.schema([*left.schema, *right.schema]))


def missing_side(schema: pa.Schema, count: int, defaults: bool) -> pa.Table:
    """``count`` rows of ``schema`` that stand for "no match": NULLs, or the default of each type."""
    columns = [_default(field.type, count) if defaults else pa.nulls(count, field.type) for field in schema]
    nullable = [field.with_nullable(True) for field in schema]
    return pa.Table.from_arrays(columns, schema=pa.schema(nullable))


def _default(kind: pa.DataType, count: int) -> pa.Array:
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pa.repeat(pa.scalar("", kind), count)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.repeat(pa.scalar(b"", kind), count)
    if pa.types.is_boolean(kind):
        return pa.repeat(pa.scalar(False), count)
    if pa.types.is_list(kind):
        return pa.array([[]] * count, kind)
    if pa.types.is_nested(kind):
        return pa.nulls(count, kind)
    return pa.repeat(pa.scalar(0, pa.int64()).cast(_integer_like(kind)).cast(kind), count)


def _integer_like(kind: pa.DataType) -> pa.DataType:
    """A type that 0 casts to and that casts on to ``kind``."""
    if pa.types.is_temporal(kind):
        return pa.int64() if kind.bit_width == 64 else pa.int32()
    return pa.int64()
