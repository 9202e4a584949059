"""Aggregate: groups of rows."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import pyarrow as pa

from dovetail.joins.aggregates.aggregation import Aggregation, Closing, Fold
from dovetail.joins.dataflow.ports import Watermark
from dovetail.joins.dataflow.state_memory import StateMemory
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.canonical_values import Form, aggregation, closing, computed, members
from dovetail.sql.plan.hybrid_state import HybridState
from dovetail.sql.plan.joins.method import Key
from dovetail.sql.plan.nodes.event_time import EventTime
from dovetail.sql.plan.nodes.map import Map
from dovetail.sql.plan.nodes.node import Node, Partitioned, clock_column, names_read
from dovetail.sql.plan.nodes.passage import Passage
from dovetail.sql.plan.nodes.scan import EventTimeOrigin
from dovetail.sql.plan.nodes.window_column import WindowColumn
from dovetail.sql.plan.time_text import span_text, sum_text
from dovetail.sql.syntax.rules import Rules


@dataclass(frozen=True)
class Aggregate(Partitioned):
    """Groups of the rows of ``input`` that agree in the columns ``by``: these, and what is made of the rows of each.

    closing   groups go when the watermark has passed them; its column is one of ``by``
    closed    a row leaves once, when its group goes (EMIT ON WINDOW CLOSE)
    recomputed  columns that are computed from all rows of a group: calls of the engine's aggregates
    """

    by: tuple[str, ...]
    aggregations: tuple[Aggregation, ...]
    closing: Closing | None = None
    closed: bool = False
    recomputed: tuple[tuple[str, Expr], ...] = ()
    place: str = ""

    @property
    def partition(self) -> tuple[str, ...]:
        return self.by

    @cached_property
    def schema(self) -> pa.Schema:
        keys = [self.input.schema.field(name) for name in self.by]
        folded = [pa.field(one.name, one.type) for one in self.aggregations]
        return pa.schema([*keys, *folded, *(pa.field(name, call.type) for name, call in self.recomputed)])

    # -- changes --

    @property
    def updates(self) -> bool:
        return not self.closed

    @cached_property
    def retracts(self) -> bool:
        """Of rows that stay, groups that are no more than their keys stay."""
        only_keys = bool(self.by) and not self.aggregations and not self.recomputed
        return not self.closed and (not only_keys or self.input.retracts)

    @cached_property
    def grows(self) -> bool:
        return bool(self.by) and self.input.grows

    def column_grows(self, name: str) -> bool:
        return self.input.column_grows(name) if name in self.by else self.grows

    def column_rises(self, name: str) -> bool:
        """The greatest of all values, where none is taken back; or of a clock's."""
        found = next((one for one in self.aggregations if one.name == name), None)
        if self.by or found is None or found.fold is not Fold.MAX:
            return False
        return not self.input.updates or self.input.column_rises(found.argument)

    @property
    def single_row(self) -> bool:
        return not self.by

    # -- keys --

    @property
    def unique_keys(self) -> list[Key]:
        return [self.by]

    @cached_property
    def nullable(self) -> Set[str]:
        return set(self.by) - self.not_null

    @cached_property
    def not_null(self) -> Set[str]:
        counts = {one.name for one in self.aggregations if one.fold is Fold.COUNT}
        return (self.input.not_null & set(self.by)) | counts

    @cached_property
    def equal_columns(self) -> Mapping[str, Set[str]]:
        below = self.input.equal_columns
        return {name: below[name] & set(self.by) for name in self.by if name in below}

    # -- event time --

    @cached_property
    def output_watermark(self) -> Watermark | None:
        below = self.input.output_watermark
        if not self.closed or self.closing is None or below is None:
            return None
        column, shift = self.closing.column, self.closing.shift
        return replace(below, column=column, delay_ms=below.delay_ms - shift, drops_late=False)

    def column_time(self, name: str) -> EventTime | None:
        """A key of groups that close follows the key by which they do, as far as both follow one event time."""
        if not self.closed or self.closing is None or name not in self.by:
            return None
        column = self.closing.column
        if name == column:
            return Passage(column, Fraction(0), self)
        first, second = self.input.column_time(name), self.input.column_time(column)
        if first is None or second is None or replace(first, shift=second.shift) != second:
            return None
        return Passage(column, first.shift - second.shift, self)

    def clock_shifts(self, column: str) -> tuple[int, ...] | None:
        return None if self.closing is None else (self.closing.shift,)

    def window_column(self, name: str) -> WindowColumn | None:
        return self.input.window_column(name) if name in self.by else None

    # -- execution --

    def memory(self, hybrid: HybridState) -> StateMemory | None:
        return hybrid.of_groups

    def keeps(self, below: Node) -> bool:
        return below.compared

    @property
    def shared_with(self) -> str:
        """Groups that go with a watermark leave as windows close, and are joined by time."""
        return self.input.shared_with if self.closing is None else ""

    def pruned(self, needed: Set[str]) -> Node:
        """At least one column leaves."""
        kept = tuple(one for one in self.aggregations if one.name in needed)
        recomputed = tuple((name, call) for name, call in self.recomputed if name in needed)
        if not (kept or recomputed or self.by):
            kept, recomputed = self.aggregations[:1], self.recomputed if not self.aggregations else ()
        wanted = {*self.by, *(one.argument for one in kept if one.argument)} | clock_column(self.input)
        wanted |= names_read(*(call for _, call in recomputed))
        below = self.input.pruned(wanted or {self.input.schema.names[0]})
        return replace(self, input=below, aggregations=kept, recomputed=recomputed)

    # -- words --

    @property
    def line(self) -> str:
        parts = ["Aggregate", f"by={','.join(self.by) or 'none'}"]
        made = [*(one.name for one in self.aggregations), *(name for name, _ in self.recomputed)]
        parts += [", ".join(made)] if made else []
        parts += ["every row once, when its window is closed"] if self.closed else []
        return "  ".join([*parts, f"state: {self._state}", "engine=spark"])

    @property
    def _state(self) -> str:
        parts = ["one row per group" if self.by else "one row"]
        kept = [f"all values of {self._computed(argument)}" for argument in self._kept_arguments]
        parts += kept
        parts += ["the current rows"] if self.input.compared else []
        bound = self._bound
        if not bound and (reason := self._unbounded(values=bool(kept))):
            bound = f", unbounded: {reason}"
        return ", ".join(parts) + bound

    @property
    def _kept_arguments(self) -> tuple[str, ...]:
        """The arguments whose values are kept one by one."""
        updates = self.input.retracts
        extremes = (Fold.MIN, Fold.MAX)
        kept = [one.argument for one in self.aggregations if one.distinct or (updates and one.fold in extremes)]
        recomputed = [name for _, call in self.recomputed for name in call.columns]
        return tuple(dict.fromkeys([*kept, *recomputed]))

    def _computed(self, column: str) -> str:
        """A column whose name nobody has written, by what it is computed from."""
        hidden = column.startswith("__") and isinstance(self.input, Map)
        return self.input.computed[column].readable if hidden and isinstance(self.input, Map) else column

    @property
    def _bound(self) -> str:
        """How far back the groups go that are kept."""
        watermark = self.input.output_watermark
        if self.closing is None or watermark is None:
            return ""
        column = self.closing.column
        kind, behind = self.schema.field(column).type, -self.closing.shift
        span = span_text(watermark.delay_ms + behind, kind)
        parts = [(behind, "from it to the event time"), (watermark.delay_ms, "watermark delay")]
        return f", of the last {span} of {column}{sum_text(parts, kind)}"

    def _unbounded(self, values: bool) -> str:
        """Why the state of groups that no watermark closes grows without end, and what would bound it; '' where it
        does not. ``values``: they keep the values of their rows one by one.
        """
        if not self.input.grows:
            return ""
        if any(map(self.input.column_grows, self.by)):
            return self._unclosed
        return "they are kept one by one" if values else ""

    @property
    def _unclosed(self) -> str:
        if self.input.updates:
            return "no watermark closes groups of rows that can be taken back"
        for origin in map(self.input.column_time, self.by):
            if not isinstance(origin, EventTimeOrigin) or not pa.types.is_timestamp(origin.type):
                continue
            time = origin.scan.internal(origin.column)
            given = f"WATERMARK FOR {origin.column} in the table"
            if origin.scan.rules == Rules.TIMEPLUS:
                given = "EMIT AFTER WINDOW CLOSE"
            return f"there is no watermark over {time}; {given} would bound them"
        return "no key follows an event time; window_start of TUMBLE or HOP, with a watermark, would bound them"

    @property
    def canonical(self) -> Form:
        return members(
            node="aggregate",
            by=list(self.by),
            aggregations=[aggregation(one) for one in self.aggregations],
            gathered=computed(self.recomputed),
            closing=closing(self.closing),
            closed=self.closed,
            input=self.input.canonical,
        )
