"""The order in which rows came, where their records do not say it.

A record's place in its partition orders the records of one partition. The changes of an operator have no place, and the
places of several partitions cannot be compared; then the rows are numbered as they come.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from changelog.changes import Changes
from changelog.rows import numpy_column
from changelog.schema import ARRIVAL
from joins.dataflow.ports import Ingest, Port
from joins.inputs.intake import Intake
from joins.state.arrangement import Arrangement
from joins.state.store import RunStore


class Arrivals:
    """Running numbers, kept over restarts under ``name``: a row of a later batch has the greater one."""

    def __init__(self, store: RunStore, name: str) -> None:
        self._scalars = store.scalars
        self._name = f"arrivals.{name}"

    def numbered(self, rows: pa.Table) -> pa.Table:
        """``rows`` with their numbers as ``arrival``, counted in the order given."""
        first = self._scalars.get(self._name, 0)
        self._scalars[self._name] = first + rows.num_rows
        numbers = pa.array(np.arange(first, first + rows.num_rows), pa.int64())
        if ARRIVAL in rows.column_names:
            return rows.set_column(rows.column_names.index(ARRIVAL), ARRIVAL, numbers)
        return rows.append_column(ARRIVAL, numbers)


def in_order(rows: pa.Table) -> pa.Table:
    """``rows`` by arrival; as they stand where they have none."""
    if ARRIVAL not in rows.column_names:
        return rows
    ascending = (np.diff(numpy_column(rows, ARRIVAL)) >= 0).all()
    return rows if ascending else rows.take(pc.sort_indices(rows.column(ARRIVAL)))


class ArrivalIntake:
    """As Intake; where the changes of an operator are to be ordered by arrival they are numbered as they come."""

    def __init__(self, port: Port, store: RunStore, name: str) -> None:
        self._arrivals: Arrivals | None = None
        if port.tie_break_by_arrival and port.ingest is Ingest.CHANGES:
            self._arrivals = Arrivals(store, name)
            port = replace(port, ingest=Ingest.CHANGELOG)
        self._intake = Intake.of(port, store, name)

    @property
    def arrangement(self) -> Arrangement:
        return self._intake.arrangement

    @property
    def unfounded(self) -> int:
        return self._intake.unfounded

    def changes(self, rows: pa.Table) -> Changes:
        return self._intake.changes(rows if self._arrivals is None else self._arrivals.numbered(in_order(rows)))
