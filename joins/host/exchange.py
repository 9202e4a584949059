"""The exchange: rows are cut into buckets by the hash of their key, so that rows of one key meet in one bucket."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.changelog.hashing import Hashes, mixed, row_hashes
from dovetail.joins.dataflow.graph import Edge

KEYLESS = 0
"""The bucket of rows that are cut by no columns."""


def bucket_of(rows: pa.Table, keys: tuple[str, ...], buckets: int) -> npt.NDArray[np.int64]:
    """The bucket of each row."""
    if buckets == 1 or not keys:
        return np.full(rows.num_rows, KEYLESS)
    return (key_hashes(rows, keys) % np.uint64(buckets)).astype(np.int64)


def key_hashes(rows: pa.Table, keys: tuple[str, ...]) -> Hashes:
    """What the bucket of each row is chosen by."""
    # Mixed once more: the arrangements order by the same hash, and a bucket must not hold only a slice of its range.
    return mixed(row_hashes(rows, keys))


def dealt(rows: pa.Table, edge: Edge, buckets: int) -> list[tuple[int, pa.Table]]:
    """``rows`` by bucket, as they travel on ``edge``."""
    if edge.broadcast:
        return [(bucket, rows) for bucket in range(buckets)] if rows.num_rows else []
    return cut(rows, edge.keys, buckets)


def cut(rows: pa.Table, keys: tuple[str, ...], buckets: int) -> list[tuple[int, pa.Table]]:
    """``rows`` by bucket, in order within each; empty buckets are left out. Without keys all go to KEYLESS."""
    if rows.num_rows == 0:
        return []
    if buckets == 1 or not keys:
        return [(KEYLESS, rows)]
    target = bucket_of(rows, keys, buckets)
    order = np.argsort(target, kind="stable")
    bounds = np.searchsorted(target[order], np.arange(buckets + 1))
    grouped = rows.take(pa.array(order))
    return [
        (bucket, grouped.slice(int(low), int(high - low)))
        for bucket, (low, high) in enumerate(itertools.pairwise(bounds))
        if high > low
    ]
