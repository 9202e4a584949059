"""TUMBLE and HOP: from rows to rows in windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dovetail.joins.dataflow.ports import Transform
from dovetail.sql.expressions.trailing_columns import with_columns
from dovetail.sql.plan.time_text import per_unit
from dovetail.sql.plan.window_shape import WindowShape


@dataclass(frozen=True)
class WindowStep:
    """Each row once for every window that holds its ``time``, with the columns ``start`` and ``end`` of that window.

    A row whose time is NULL is in none; where windows begin further apart than they are long some others are in none
    either.

        slide 5, size 10, time 12:       0    5   12   15   20
                                              [----*----)         5 .. 15
                                                  [*--------)    10 .. 20

    The rows keep their order, the windows of a row theirs; ``arrival`` and ``delta`` carry over.
    """

    time: str
    windows: WindowShape
    start: str
    end: str

    def bound(self, snapshots: Mapping[str, pa.Table]) -> Transform:
        return self

    def __call__(self, rows: pa.Table) -> pa.Table:
        rows = rows.filter(rows.column(self.time).is_valid())
        times = rows.column(self.time).cast(pa.int64()).to_numpy()
        unit = per_unit(rows.schema.field(self.time).type)
        shape = self.windows
        slide, size, offset = (ms * 1_000 // unit for ms in (shape.slide_ms, shape.size_ms, shape.offset_ms))
        count = -(-size // slide)
        ahead = np.arange(1 - count, 1, dtype=np.int64) * slide
        starts = ((times - offset) // slide * slide + offset)[:, np.newaxis] + ahead
        inside = starts + size > times[:, np.newaxis]
        positions = np.nonzero(inside)[0]
        return self._with(rows if inside.all() and count == 1 else rows.take(pa.array(positions)), starts[inside], size)

    def _with(self, rows: pa.Table, starts: np.ndarray, size: int) -> pa.Table:
        """``rows`` with their windows."""
        kind = rows.schema.field(self.time).type
        bounds = ((self.start, starts), (self.end, starts + size))
        return with_columns(rows, ((pa.field(name, kind), pa.array(values).cast(kind)) for name, values in bounds))
