"""The order of the rows of a partition, and their ranks in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.hashing import row_hashes
from dovetail.changelog.rows import Mask, Positions, equal_rows, numbered
from dovetail.joins.state.order import is_ordered, sortable

_PARTITION = "__partition"


@dataclass(frozen=True)
class SortKey:
    """A term of ORDER BY. NaN is greater than all numbers; texts are in the order of their bytes."""

    column: str
    descending: bool = False
    nulls_first: bool = False


class Rank(StrEnum):
    """What a row is counted by. ``peers`` are rows that agree in the terms of ORDER BY."""

    ROW_NUMBER = "row_number"
    """Its place: 1, 2, 3, .."""
    RANK = "rank"
    """The place of the first of its peers."""
    DENSE_RANK = "dense_rank"
    """The place of its peers, each counted once."""


def partitions_of(rows: pa.Table, keys: Sequence[str]) -> tuple[Positions, pa.Table]:
    """The number of the partition of each row, and the keys of each partition by its number."""
    if not keys:
        return np.zeros(rows.num_rows, dtype=np.int64), pa.table({"one": [0]})
    number, first = numbered(rows.select(list(keys)))
    return number, rows.select(list(keys)).take(pa.array(first))


def in_order(rows: pa.Table, partition: Positions, keys: Sequence[SortKey]) -> Positions:
    """The positions of ``rows``, partition by partition, each in the order of ``keys``.

    Where these leave it open, the row itself says: its columns, ascending. So an order never hangs on arrival.
    """
    named = {key.column for key in keys}
    every = [*keys, *(SortKey(name) for name in rows.column_names if name not in named)]
    columns: dict[str, pa.ChunkedArray | Positions] = {_PARTITION: partition}
    terms = [(_PARTITION, "ascending", "at_end")]
    for number, key in enumerate(every):
        columns[str(number)] = _comparable(rows, key.column)
        way = "descending" if key.descending else "ascending"
        terms.append((str(number), way, "at_start" if key.nulls_first else "at_end"))
    found: Positions = pc.sort_indices(pa.table(columns), sort_keys=terms).to_numpy().astype(np.int64)
    return found


def _comparable(rows: pa.Table, name: str) -> pa.ChunkedArray | Positions:
    """A column that Arrow sorts; lists and structs, which it does not, go by their hash."""
    column = rows.column(name)
    if is_ordered(column.type):
        return sortable(column)
    return row_hashes(rows.select([name]), [name]).view(np.int64)


def begins(rows: pa.Table, partition: Positions, columns: Sequence[str]) -> Mask:
    """Of rows in order: whether a row differs, in its partition or one of ``columns``, from the one before it."""
    first = np.ones(rows.num_rows, dtype=np.bool_)
    if rows.num_rows > 1:
        pairs = [(name, name) for name in columns]
        same = equal_rows(rows.slice(1), rows.slice(0, rows.num_rows - 1), pairs, [True] * len(pairs))
        first[1:] = ~(same & (partition[1:] == partition[:-1]))
    return first


def firsts(rows: pa.Table, partition: Positions, keys: Sequence[SortKey], counts: Positions, rank: Rank) -> Positions:
    """The rank of each of ``rows``, which are in order and of which each stands ``counts`` times: of a row number that
    of the first of them.
    """
    new_partition = begins(rows, partition, ())
    places = running(counts, new_partition) - counts + 1
    if rank is Rank.ROW_NUMBER:
        return places
    new_peers = begins(rows, partition, [key.column for key in keys])
    if rank is Rank.DENSE_RANK:
        return running(new_peers.astype(np.int64), new_partition)
    of_peers: Positions = places[np.flatnonzero(new_peers)][np.cumsum(new_peers) - 1]
    return of_peers


def running(counts: Positions, new_partition: Mask) -> Positions:
    """The sum of ``counts`` from the beginning of each partition to each row, that row's included."""
    through = np.cumsum(counts)
    before = (through - counts)[np.flatnonzero(new_partition)]
    summed: Positions = through - before[np.cumsum(new_partition) - 1]
    return summed
