"""Sessions: SESSION windows."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from dovetail.changelog.errors import InternalError
from dovetail.joins.dataflow.ports import Watermark
from dovetail.joins.dataflow.state_memory import StateMemory
from dovetail.sql.plan.canonical_values import Form, members
from dovetail.sql.plan.hybrid_state import HybridState
from dovetail.sql.plan.joins.method import Key
from dovetail.sql.plan.nodes.node import Node, Partitioned, clock_column
from dovetail.sql.plan.time_text import length_text


@dataclass(frozen=True)
class Sessions(Partitioned):
    """SESSION: each row of ``input`` with the columns ``start`` and ``end`` of its session, among the rows that agree
    in ``keys``; as ``joins.aggregates.sessions`` has it.

    keys     None until the GROUP BY above is known, whose keys they are
    closing  no row whose ``time`` is behind the watermark of the input and this can come, or be taken back; None: one
             can
    closed   a row leaves once, when its session has ended (EMIT ON WINDOW CLOSE)
    """

    time: str
    gap_ms: int
    longest_ms: int | None
    start: str
    end: str
    keys: tuple[str, ...] | None = None
    closing: int | None = None
    closed: bool = False
    place: str = ""

    @property
    def by(self) -> tuple[str, ...]:
        """The keys, which the plan of a whole query knows."""
        if self.keys is None:
            raise InternalError("the sessions have no GROUP BY yet")
        return self.keys

    @property
    def partition(self) -> tuple[str, ...]:
        return self.by

    @cached_property
    def schema(self) -> pa.Schema:
        kind = self.input.schema.field(self.time).type
        return pa.schema([*self.input.schema, pa.field(self.start, kind), pa.field(self.end, kind)])

    @property
    def updates(self) -> bool:
        return not self.closed

    def column_grows(self, name: str) -> bool:
        return self.input.column_grows(self.time if name in (self.start, self.end) else name)

    @property
    def unique_keys(self) -> list[Key]:
        return self.input.unique_keys

    @cached_property
    def not_null(self) -> Set[str]:
        return self.input.not_null | {self.time, self.start, self.end}

    @cached_property
    def output_watermark(self) -> Watermark | None:
        """A session that is yet to gain a row ends after the watermark of the rows."""
        below = self.input.output_watermark
        if self.closing is None or below is None:
            return None
        return replace(below, column=self.end, delay_ms=below.delay_ms - self.closing, drops_late=False)

    def memory(self, hybrid: HybridState) -> StateMemory | None:
        return hybrid.of_groups

    def pruned(self, needed: Set[str]) -> Node:
        own = {self.time, *self.by} | clock_column(self.input)
        return replace(self, input=self.input.pruned((needed | own) - {self.start, self.end}))

    @property
    def line(self) -> str:
        gap, ms = length_text(self.gap_ms, pa.timestamp("ms")), pa.timestamp("ms")
        parts = ["Sessions", f"by={','.join(self.by) or 'none'}", self.time, f"gap {gap}"]
        parts += [f"at most {length_text(self.longest_ms, ms)}"] if self.longest_ms is not None else []
        parts += ["every row once, when its session has ended"] if self.closed else []
        state = "the rows of open sessions" if self.closing is not None else "all rows"
        state += ", the current rows" if self.input.compared else ""
        if self.closing is None and self.grows:
            state += ", unbounded: no watermark tells when a session has ended"
        return "  ".join([*parts, f"state: {state}", "engine=spark"])

    @property
    def canonical(self) -> Form:
        return members(
            node="sessions",
            keys="none yet" if self.keys is None else list(self.keys),
            time=self.time,
            gap_ms=self.gap_ms,
            longest_ms=self.longest_ms,
            start=self.start,
            end=self.end,
            closing=self.closing,
            closed=self.closed,
            input=self.input.canonical,
        )
