"""TUMBLE and HOP: from rows to rows in windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dovetail.joins.dataflow.ports import Transform
from dovetail.sql.expressions.trailing_columns import with_columns
from dovetail.sql.plan.time_text import per_unit


@dataclass(frozen=True)
class WindowStep:
    """Each row once for every window that holds its ``time``, with the columns ``start`` and ``end`` of that window.

    Windows begin at multiples of ``slide_ms`` since the epoch, are ``size_ms`` long, hold their start and not their
    end. A row whose time is NULL is in none; where ``slide_ms`` exceeds ``size_ms`` some others are in none either.

        slide 5, size 10, time 12:       0    5   12   15   20
                                              [----*----)         5 .. 15
                                                  [*--------)    10 .. 20

    The rows keep their order, the windows of a row theirs; ``arrival`` and ``delta`` carry over.
    """

    time: str
    size_ms: int
    slide_ms: int
    start: str
    end: str

    def bound(self, snapshots: Mapping[str, pa.Table]) -> Transform:
        return self

    def __call__(self, rows: pa.Table) -> pa.Table:
        rows = rows.filter(rows.column(self.time).is_valid())
        times = rows.column(self.time).cast(pa.int64()).to_numpy()
        unit = per_unit(rows.schema.field(self.time).type)
        slide, size = self.slide_ms * 1_000 // unit, self.size_ms * 1_000 // unit
        count = -(-size // slide)
        ahead = np.arange(1 - count, 1, dtype=np.int64) * slide
        starts = ((times // slide) * slide)[:, np.newaxis] + ahead
        inside = starts + size > times[:, np.newaxis]
        positions = np.nonzero(inside)[0]
        return self._with(rows if inside.all() and count == 1 else rows.take(pa.array(positions)), starts[inside], size)

    def _with(self, rows: pa.Table, starts: np.ndarray, size: int) -> pa.Table:
        """``rows`` with their windows."""
        kind = rows.schema.field(self.time).type
        bounds = ((self.start, starts), (self.end, starts + size))
        return with_columns(rows, ((pa.field(name, kind), pa.array(values).cast(kind)) for name, values in bounds))
