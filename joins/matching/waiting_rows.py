"""Rows that wait until a watermark has passed their time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from dovetail.changelog.changes import Changes
from dovetail.changelog.rows import Positions, numpy_column
from dovetail.changelog.schema import ARRIVAL
from dovetail.joins.state.arrangement import Arrangement
from dovetail.joins.state.order import EARLIEST, bound_after, bound_of, times_of
from dovetail.joins.state.store import RunStore


class WaitingRows:
    """Rows of ``schema`` in the order of the column ``time``, found by ``keys``.

    Rows whose time is NULL are passed by no watermark: they are not to be held.
    """

    def __init__(self, schema: pa.Schema, keys: Sequence[str], time: str, store: RunStore, name: str) -> None:
        self._kind = schema.field(time).type
        self._time = time
        self._rows = Arrangement(store, name, schema, keys, order=time)

    def hold(self, changes: Changes) -> None:
        self._rows.insert(changes)

    def released(self, watermark: int | None, *, reached: bool = False) -> Changes:
        """The rows whose time is behind ``watermark`` (ms, or the number itself), held no more.

        reached   and those at it

        In order of time; equal times in that of arrival, where the rows have one.
        """
        if watermark is None:
            return Changes.empty(self._rows.schema)
        bound = bound_after(watermark, self._kind) if reached else bound_of(watermark, self._kind)
        gone = self._rows.expire(bound).insertions
        order = [times_of(gone.table.column(self._time))]
        if ARRIVAL in gone.table.column_names:
            order.insert(0, numpy_column(gone.table, ARRIVAL))
        return gone.take(np.lexsort(order))

    @property
    def passed(self) -> int:
        """The time before which all rows were released."""
        return EARLIEST if self._rows.expired is None else self._rows.expired

    def earliest(self, rows: pa.Table, keys: Sequence[str]) -> tuple[Positions, pa.ChunkedArray]:
        """The least time that waits under the join key of each of ``rows``: positions of those that have one, times."""
        found = self._rows.nearest(rows, np.full(rows.num_rows, EARLIEST), newest=False, inclusive=True, keys=keys)
        probe, firsts = np.unique(found.probe, return_index=True)
        return probe, found.rows.column(self._time).take(pa.array(firsts))
