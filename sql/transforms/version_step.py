"""Upserts as versions, deletes among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.changes import DELTA, DELTA_TYPE
from dovetail.changelog.rows import numpy_column
from dovetail.joins.dataflow.ports import Transform
from dovetail.sql.expressions.trailing_columns import with_columns


@dataclass(frozen=True)
class VersionStep:
    """Every record an insertion, a version of its key; ``deletes`` is true of those that ended a row.

    The record of a delete holds its key alone, and so no ``time``: the version begins at ``record_time``.
    """

    time: str
    record_time: str
    deletes: str

    def bound(self, snapshots: Mapping[str, pa.Table]) -> Transform:
        return self

    def __call__(self, rows: pa.Table) -> pa.Table:
        gone = pa.array(numpy_column(rows, DELTA) < 0)
        place = rows.schema.get_field_index(self.time)
        field = rows.schema.field(place)
        begins = rows.column(self.record_time).cast(field.type)
        rows = rows.set_column(place, field, pc.if_else(gone, begins, rows.column(self.time)))
        inserted = pa.array(np.ones(rows.num_rows, dtype=np.int32), DELTA_TYPE)
        delta = rows.schema.get_field_index(DELTA)
        rows = rows.set_column(delta, rows.schema.field(delta), inserted)
        return with_columns(rows, [(pa.field(self.deletes, pa.bool_()), gone)])
