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
        kind = rows.schema.field(self.time).type
        starts, ends = self._of_months(times, kind) if self.windows.months is not None else self._of_time(times, kind)
        inside = ends > times[:, np.newaxis]
        if not inside.all() or inside.shape[1] > 1:
            rows = rows.take(pa.array(np.nonzero(inside)[0]))
        return self._with(rows, starts[inside], ends[inside])

    def _of_time(self, times: np.ndarray, kind: pa.DataType) -> tuple[np.ndarray, np.ndarray]:
        """For each time the bounds of all windows that may hold it."""
        shape, unit = self.windows, per_unit(kind)
        slide, size, offset = (ms * 1_000 // unit for ms in (shape.slide_ms, shape.size_ms, shape.offset_ms))
        starts = _every(times, size, slide, offset)
        return starts, starts + size

    def _of_months(self, times: np.ndarray, kind: pa.DataType) -> tuple[np.ndarray, np.ndarray]:
        assert self.windows.months is not None
        size, slide = self.windows.months
        unit = f"datetime64[{kind.unit}]"
        starts = _every(times.astype(unit).astype("datetime64[M]").astype(np.int64), size, slide, 0)
        bounds = starts, starts + size
        first, last = (one.astype("datetime64[M]").astype(unit).astype(np.int64) for one in bounds)
        return first, last

    def _with(self, rows: pa.Table, starts: np.ndarray, ends: np.ndarray) -> pa.Table:
        """``rows`` with their windows."""
        kind = rows.schema.field(self.time).type
        bounds = ((self.start, starts), (self.end, ends))
        return with_columns(rows, ((pa.field(name, kind), pa.array(values).cast(kind)) for name, values in bounds))


def _every(times: np.ndarray, size: int, slide: int, offset: int) -> np.ndarray:
    """Where the last windows begin that begin at or before each time, as many as can hold it."""
    ahead = np.arange(1 - -(-size // slide), 1, dtype=np.int64) * slide
    starts: np.ndarray = ((times - offset) // slide * slide + offset)[:, np.newaxis] + ahead
    return starts
