"""Output that waits until it is final."""

from __future__ import annotations

import pyarrow as pa

from dovetail.changelog.changes import Changes
from dovetail.changelog.rows import Mask
from dovetail.joins.state.arrangement import Arrangement
from dovetail.joins.state.order import EARLIEST, NEVER, Times
from dovetail.joins.state.partitioned_by import PartitionedBy
from dovetail.joins.state.store import RunStore

_DUE = "__due"


class PendingOutput:
    """Changes of the output, each with the time at which its row is **due**: final once a bound is beyond it.

    What adds up to a row leaves once, when it is due; what was taken back until then never does. A row that has left is
    not taken back: changes that come when they have been due already are left out. So are those that are due NEVER.
    """

    def __init__(self, store: RunStore, name: str, schema: pa.Schema, partitioned_by: PartitionedBy) -> None:
        self._schema = schema
        columns = schema.append(pa.field(_DUE, pa.int64()))
        self._rows = Arrangement(store, name, columns, (), order=_DUE, partitioned_by=partitioned_by)

    def hold(self, changes: Changes, due: Times) -> None:
        table = changes.rows.append_column(_DUE, pa.array(due, pa.int64()))
        released = EARLIEST if self._rows.expired is None else self._rows.expired
        waiting: Mask = (due >= released) & (due != NEVER)
        self._rows.insert(Changes.with_deltas(table, changes.deltas).where(waiting))

    def released(self, bound: int) -> Changes:
        """The rows that were due before ``bound``, held no more."""
        return Changes(self._rows.expire(bound).insertions.table.drop_columns([_DUE]))
