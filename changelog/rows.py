"""Small pieces of relational work on Arrow tables: equality and grouping of rows, ranges, padding.

Values are equal as ``changelog.values`` says. Whatever groups rows, or compares them, does it by the functions here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.hashing import row_hashes
from dovetail.changelog.values import holds_floats, normalised, normalised_array

Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def expand(low: Positions, high: Positions) -> tuple[Positions, Positions]:
    """All pairs (i, p) with ``low[i] <= p < high[i]``, ordered by i, then p."""
    counts = high - low
    owners = np.repeat(np.arange(len(counts)), counts)
    firsts = np.repeat(low - (np.cumsum(counts) - counts), counts)
    return owners, firsts + np.arange(len(owners))


def equal_rows(left: pa.Table, right: pa.Table, pairs: Sequence[tuple[str, str]], null_safe: Sequence[bool]) -> Mask:
    """Row by row, whether ``left`` and ``right`` agree on each pair of columns; NULL equals NULL where null-safe.

    NaN equals NaN.
    """
    agree = np.ones(left.num_rows, dtype=np.bool_)
    for (left_name, right_name), safe in zip(pairs, null_safe, strict=True):
        agree &= _equal(left.column(left_name), right.column(right_name), safe)
    return agree


def _equal(left: pa.ChunkedArray, right: pa.ChunkedArray, null_safe: bool) -> Mask:
    if pa.types.is_nested(left.type):
        pairs = zip(_comparable(left), _comparable(right), strict=True)
        return np.fromiter((a == b and (null_safe or a is not None) for a, b in pairs), np.bool_, len(left))
    if not left.null_count and not right.null_count:
        return _values_equal(left, right)
    absent = left.is_null().to_numpy(), right.is_null().to_numpy()
    mask: Mask = pc.fill_null(pc.equal(left, right), False).to_numpy()
    if pa.types.is_floating(left.type):
        mask = mask | (
            pc.fill_null(pc.is_nan(left), False).to_numpy() & pc.fill_null(pc.is_nan(right), False).to_numpy()
        )
    return mask | (absent[0] & absent[1]) if null_safe else mask


def _comparable(nested: pa.ChunkedArray) -> list[object]:
    """A value for each row, equal for equal rows; None for NULL. As a text NaN equals itself."""
    if not holds_floats(nested.type):
        return list(nested.to_pylist())
    values = [value for chunk in nested.chunks for value in normalised_array(chunk).to_pylist()]
    return [None if value is None else repr(value) for value in values]


def _values_equal(left: pa.ChunkedArray, right: pa.ChunkedArray) -> Mask:
    """Of columns without NULL."""
    if not (pa.types.is_integer(left.type) or pa.types.is_floating(left.type)):
        equal: Mask = pc.equal(left, right).to_numpy(zero_copy_only=False)
        return equal
    ours, theirs = left.to_numpy(), right.to_numpy()
    same: Mask = ours == theirs
    if pa.types.is_floating(left.type) and not same.all():
        same |= np.isnan(ours) & np.isnan(theirs)
    return same


def groups_of_equal(rows: pa.Table) -> tuple[Positions, Positions]:
    """Positions of ``rows``, equal rows next to each other, and where each group starts.

    NULL equals NULL, and NaN NaN. Rows are grouped by hash; those of one hash that differ after all are told apart by
    comparison.
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


def distinct(rows: pa.Table) -> pa.Table:
    """Each of ``rows`` once, in order of first appearance."""
    order, starts = groups_of_equal(rows)
    return rows.take(pa.array(np.sort(np.minimum.reduceat(order, starts)))) if len(starts) < rows.num_rows else rows


@dataclass(frozen=True)
class RowsByKey:
    """Rows by key, keys in order of first appearance: ``members`` holds row positions, group by group, ascending."""

    members: Positions
    begins: Positions

    @staticmethod
    def by(rows: pa.Table, key: Sequence[str]) -> RowsByKey:
        order, starts = groups_of_equal(rows.select(list(key)))
        if len(starts) == rows.num_rows:
            return RowsByKey(np.arange(rows.num_rows), np.arange(rows.num_rows))
        first = np.empty_like(order)
        first[order] = np.repeat(np.minimum.reduceat(order, starts), np.diff(np.append(starts, len(order))))
        members = np.argsort(first, kind="stable")
        return RowsByKey(members, np.flatnonzero(np.diff(first[members], prepend=-1)))

    @property
    def ends(self) -> Positions:
        return np.append(self.begins[1:], len(self.members))

    @property
    def last(self) -> Positions:
        last: Positions = self.members[self.ends - 1]
        return last

    @property
    def owner_of_member(self) -> Positions:
        return np.repeat(np.arange(len(self.begins)), self.ends - self.begins)


def _groups_by_value(rows: pa.Table) -> tuple[Positions, Positions]:
    """As ``groups_of_equal``, row by row: for the rare batch in which two different rows share a hash."""
    members: dict[str, list[int]] = {}
    columns = [column.to_pylist() for column in normalised(rows).columns]
    for position, row in enumerate(zip(*columns, strict=True)):
        members.setdefault(repr(row), []).append(position)
    sizes = np.array([len(positions) for positions in members.values()], dtype=np.int64)
    order = np.array([position for positions in members.values() for position in positions], dtype=np.int64)
    return order, np.cumsum(sizes) - sizes


def shortfalls(groups: Positions, deltas: npt.NDArray[Any], held: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """How many rows are taken from each group that are not there: ``held[g]`` are, then come ``deltas``, in order.

    A group that falls below nothing stays at nothing, so it ends at ``held + sum + shortfall``, however the changes are
    cut into batches.
    """
    lowest = np.zeros_like(held)
    if len(groups):
        order = np.argsort(groups, kind="stable")
        own, through = groups[order], np.cumsum(deltas[order])
        starts = np.flatnonzero(np.diff(own, prepend=-1))
        before = through[starts] - deltas[order[starts]]
        lowest[own[starts]] = np.minimum.reduceat(through, starts) - before
    missing: npt.NDArray[Any] = np.maximum(-(held + lowest), 0)
    return missing


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
    if pa.types.is_decimal(kind):
        # Arrow casts an integer to no decimal that could not hold all integers.
        return pa.repeat(pa.scalar(Decimal(0), kind), count)
    carrier = pa.int32() if pa.types.is_temporal(kind) and kind.bit_width == 32 else pa.int64()
    return pa.repeat(pa.scalar(0, carrier).cast(kind), count)
