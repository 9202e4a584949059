"""The exchange: rows are cut into buckets by the hash of their key, so that rows of one key meet in one bucket."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa

from changelog.hashing import mixed, row_hashes

KEYLESS = 0
"""The bucket of rows that are cut by no columns."""


def cut(rows: pa.Table, keys: tuple[str, ...], buckets: int) -> list[tuple[int, pa.Table]]:
    """``rows`` by bucket, in order within each; empty buckets are left out. Without keys all go to KEYLESS."""
    if rows.num_rows == 0:
        return []
    if buckets == 1 or not keys:
        return [(KEYLESS, rows)]
    # Mixed once more: the arrangements order by the same hash, and a bucket must not hold only a slice of its range.
    target = mixed(row_hashes(rows, keys)) % np.uint64(buckets)
    order = np.argsort(target, kind="stable")
    bounds = np.searchsorted(target[order], np.arange(buckets + 1, dtype=np.uint64))
    grouped = rows.take(pa.array(order))
    return [
        (bucket, grouped.slice(int(low), int(high - low)))
        for bucket, (low, high) in enumerate(itertools.pairwise(bounds))
        if high > low
    ]
