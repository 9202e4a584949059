"""Window: TUMBLE and HOP."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import pyarrow as pa

from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.canonical_values import Form, members
from dovetail.sql.plan.joins.method import Key
from dovetail.sql.plan.nodes.event_time import MICROS, EventTime
from dovetail.sql.plan.nodes.node import Chained, Node, over
from dovetail.sql.plan.nodes.window_column import WindowColumn
from dovetail.sql.plan.window_shape import WindowShape


@dataclass(frozen=True)
class Window(Chained):
    """TUMBLE or HOP: each row of ``input`` once for every window that holds its ``time``, with the columns ``start``
    and ``end`` of this window. A row without a time is in none.
    """

    time: str
    windows: WindowShape
    start: str
    end: str

    @cached_property
    def schema(self) -> pa.Schema:
        kind = self.input.schema.field(self.time).type
        return pa.schema([*self.input.schema, pa.field(self.start, kind), pa.field(self.end, kind)])

    def column_grows(self, name: str) -> bool:
        return self.input.column_grows(self.time if name in (self.start, self.end) else name)

    @cached_property
    def unique_keys(self) -> list[Key]:
        others = () if self.windows.tumbles else (self.start,)
        return [(*key, *others) for key in self.input.unique_keys]

    @cached_property
    def not_null(self) -> Set[str]:
        return self.input.not_null | {self.time, self.start, self.end}

    @cached_property
    def arrival_columns(self) -> Set[str]:
        below = self.input.arrival_columns
        return below | {self.start, self.end} if self.time in below else below

    def column_time(self, name: str) -> EventTime | None:
        """``window_start`` is later than the time of its row less the size of the window, ``window_end`` later than
        that time; both in whole milliseconds.
        """
        if name not in (self.start, self.end):
            return super().column_time(name)
        below = self.input.column_time(self.time)
        earlier = self.windows.size_ms if name == self.start else 0
        return None if below is None else below.shifted(Fraction((1 - earlier) * MICROS))

    def window_column(self, name: str) -> WindowColumn | None:
        if name not in (self.start, self.end):
            return super().window_column(name)
        return WindowColumn(self.windows, name, name == self.start)

    def filters_below(self, terms: Sequence[Expr]) -> list[Expr]:
        return over(terms, self.input.schema.names)

    def pruned(self, needed: Set[str]) -> Node:
        return replace(self, input=self.input.pruned((needed | {self.time}) - {self.start, self.end}))

    @property
    def line(self) -> str:
        kind = "tumble" if self.windows.tumbles else "hop"
        return f"Window {kind}  {self.time}  size {self.windows}  state: none"

    @property
    def canonical(self) -> Form:
        return members(
            node="window",
            time=self.time,
            size_ms=self.windows.size_ms,
            slide_ms=self.windows.slide_ms,
            offset_ms=self.windows.offset_ms or None,
            months=None if self.windows.months is None else list(self.windows.months),
            start=self.start,
            end=self.end,
            input=self.input.canonical,
        )
