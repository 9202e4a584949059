"""What weighs most in a portion: the bytes of its keys, and whether it can be cut."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dovetail.changelog.changes import DELTA
from dovetail.changelog.hashing import Hashes
from dovetail.joins.host.exchange import key_hashes
from dovetail.joins.state.arrangement_stats import key_text
from dovetail.joins.state.partitioned_by import PartitionedBy
from dovetail.joins.state.store import SORT, RunStore


@dataclass(frozen=True)
class Weights:
    """Of the rows of a portion that keys cut, in bytes.

    keys      how many different keys they have
    heaviest  what that key has which has most
    others    what all other keys have together
    key       the heaviest, as a text: ``l.k = 7``
    """

    keys: int
    heaviest: int
    others: int
    key: str


@dataclass(frozen=True)
class _Rows:
    """Of a run, those that came by the same columns."""

    rows: pa.Table
    keys: tuple[str, ...]
    hashes: Hashes
    row_bytes: float


def weighed(store: RunStore, partitioned_by: Mapping[str, PartitionedBy]) -> Weights:
    """Of all that ``store`` holds; ``partitioned_by`` by arrangement. Rows weigh as much as the mean one of theirs."""
    parts = [part for part in _parts(store, partitioned_by) if part.rows.num_rows]
    if not parts:
        return Weights(0, 0, 0, "")
    hashes, numbers = np.unique(np.concatenate([part.hashes for part in parts]), return_inverse=True)
    each = np.concatenate([np.full(part.rows.num_rows, part.row_bytes) for part in parts])
    sizes = np.bincount(numbers, each)
    at = int(np.argmax(sizes))
    return Weights(len(hashes), math.ceil(sizes[at]), int(sizes.sum() - sizes[at]), _named(parts, hashes[at]))


def _parts(store: RunStore, partitioned_by: Mapping[str, PartitionedBy]) -> Iterator[_Rows]:
    for name, run in store.all_runs():
        if partitioned_by[name].everywhere:
            continue
        for rows, keys in partitioned_by[name].parted(run.table.drop_columns([SORT, DELTA])):
            yield _Rows(rows, keys, key_hashes(rows, keys), run.bytes / len(run))


def _named(parts: list[_Rows], word: np.uint64) -> str:
    for part in parts:
        found = np.flatnonzero(part.hashes == word)
        if len(found):
            key = part.rows.select(list(part.keys)).slice(int(found[0]), 1)
            return f"{', '.join(part.keys)} = {key_text(key)}" if part.keys else "every row"
    return ""
