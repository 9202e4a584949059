"""The order in which rows came.

A batch is put in order when it is taken in, once for all operators. A record's place tells nothing beyond its batch:
the places of several partitions cannot be compared, and the changes of an operator have none. So where the order is to
be remembered rows are numbered as they come.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pyarrow as pa

from dovetail.changelog.changes import Changes
from dovetail.changelog.rows import numpy_column
from dovetail.changelog.schema import ARRIVAL, OFFSET_BITS, WRITTEN
from dovetail.joins.dataflow.ports import Ingest, Port
from dovetail.joins.inputs.change_normalizer import ChangeNormalizer
from dovetail.joins.state.arrangement import Arrangement
from dovetail.joins.state.store import RunStore

ARRIVALS = "arrivals."
"""So begin the names of the running numbers, among the numbers of a store."""


class Arrivals:
    """Running numbers, kept over restarts under ``name``: a row of a later batch has the greater one."""

    def __init__(self, store: RunStore, name: str) -> None:
        self._scalars = store.scalars
        self._name = f"{ARRIVALS}{name}"

    def numbered(self, rows: pa.Table) -> pa.Table:
        """``rows`` with their numbers as ``arrival``, counted in the order given."""
        first = self._scalars.get(self._name, 0)
        self._scalars[self._name] = first + rows.num_rows
        numbers = pa.array(np.arange(first, first + rows.num_rows), pa.int64())
        if ARRIVAL in rows.column_names:
            return rows.set_column(rows.column_names.index(ARRIVAL), ARRIVAL, numbers)
        return rows.append_column(ARRIVAL, numbers)


def in_order(rows: pa.Table) -> pa.Table:
    """``rows`` in the order of their arrival, WRITTEN gone; as they stand where nothing tells it.

    That is by the timestamps of their records, then by partition, then by offset. The records of one partition come in
    its order whatever their timestamps: it is that of compaction, and of the same records in several batches. So each
    counts with the greatest timestamp so far.
    """
    if ARRIVAL not in rows.column_names:
        return rows
    arrivals = numpy_column(rows, ARRIVAL)
    order = np.arange(len(arrivals)) if (np.diff(arrivals) >= 0).all() else np.argsort(arrivals, kind="stable")
    if WRITTEN in rows.column_names:
        written = numpy_column(rows, WRITTEN)[order]
        rows = rows.drop_columns([WRITTEN])
        partitions = arrivals[order] >> OFFSET_BITS
        for low, high in itertools.pairwise([0, *np.flatnonzero(np.diff(partitions)) + 1, len(order)]):
            written[low:high] = np.maximum.accumulate(written[low:high])
        order = order[np.argsort(written, kind="stable")]
    return rows if (np.diff(order) == 1).all() else rows.take(pa.array(order))


def insertions_first(rows: pa.Table) -> pa.Table:
    """Changes of an operator, which come from its buckets in any order: what is taken back is there."""
    return rows.take(pa.array(np.argsort(Changes(rows).deltas < 0, kind="stable")))


class ArrivalIntake:
    """As ChangeNormalizer; where rows are told apart by arrival they are numbered as they come."""

    def __init__(self, port: Port, store: RunStore, name: str) -> None:
        self._arrivals = Arrivals(store, name) if port.tie_break_by_arrival else None
        self._unordered = port.tie_break_by_arrival and port.ingest is Ingest.CHANGES
        if self._unordered:
            port = replace(port, ingest=Ingest.CHANGELOG)
        self._normalizer = ChangeNormalizer.of(port, store, name)

    @property
    def arrangement(self) -> Arrangement:
        return self._normalizer.arrangement

    @property
    def dangling(self) -> int:
        return self._normalizer.dangling

    def changes(self, rows: pa.Table) -> Changes:
        rows = rows if self._arrivals is None else self._arrivals.numbered(rows)
        return self._normalizer.changes(insertions_first(rows) if self._unordered else rows)
