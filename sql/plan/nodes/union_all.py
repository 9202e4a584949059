"""UnionAll: the rows of several queries."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Self

import pyarrow as pa

from dovetail.joins.dataflow.ports import Watermark
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.canonical_values import Form, fields, members
from dovetail.sql.plan.joins.method import Key
from dovetail.sql.plan.nodes.event_time import EventTime
from dovetail.sql.plan.nodes.node import CUT_SOMEHOW, Cut, Exchange, Exchanged, Node, clock_column
from dovetail.sql.plan.nodes.passage import Passage


@dataclass(frozen=True)
class UnionAll(Exchanged):
    """The rows of all ``parts``, each as often as all of them together give it; of each the columns ``fields``.

    clock   the column that has a watermark, the least of those of the parts; empty: none has
    shifts  by part, how much less than its watermark the clock of a row may be that is yet to come
    """

    parts: tuple[Node, ...]
    fields: pa.Schema
    clock: str = ""
    shifts: tuple[int, ...] = ()

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.parts

    def with_inputs(self, *inputs: Node) -> Self:
        return replace(self, parts=inputs)

    @property
    def schema(self) -> pa.Schema:
        return self.fields

    # -- changes --

    @cached_property
    def updates(self) -> bool:
        return any(part.updates for part in self.parts)

    @cached_property
    def retracts(self) -> bool:
        return any(part.retracts for part in self.parts)

    @cached_property
    def grows(self) -> bool:
        return any(part.grows for part in self.parts)

    def column_grows(self, name: str) -> bool:
        return any(part.column_grows(name) for part in self.parts)

    # -- keys --

    @cached_property
    def unique_keys(self) -> list[Key]:
        """Of one part, whose records a level makes changes of, those of that."""
        if len(self.parts) > 1:
            return []
        return [key for key in self.parts[0].unique_keys if set(key) <= set(self.schema.names)]

    @cached_property
    def nullable(self) -> Set[str]:
        return frozenset().union(*(part.nullable for part in self.parts))

    @cached_property
    def not_null(self) -> Set[str]:
        return set(self.schema.names).intersection(*(part.not_null for part in self.parts))

    # -- event time --

    @property
    def output_watermark(self) -> Watermark | None:
        """Its delays are those of the parts, and are subtracted there."""
        return Watermark(self.clock, 0, max_future_ms=None, drops_late=False) if self.clock else None

    def column_time(self, name: str) -> EventTime | None:
        if self.updates or any(part.column_time(name) is None for part in self.parts):
            return None
        return Passage(name, Fraction(0), self)

    def clock_shifts(self, column: str) -> tuple[int, ...] | None:
        return self.shifts or None

    # -- execution --

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        return tuple(Exchange(part, part.retraction_key) for part in self.parts)

    @property
    def bucket_key(self) -> Cut | None:
        return CUT_SOMEHOW

    def keeps(self, below: Node) -> bool:
        return below.compared

    def filters_below(self, terms: Sequence[Expr]) -> list[Expr]:
        """Equal rows pass alike."""
        return list(terms)

    def pruned(self, needed: Set[str]) -> Node:
        """At least one column travels, and of rows that can be taken back all by which they are found."""
        kept = [field for field in self.schema if field.name in {*needed, self.clock}] or [self.schema.field(0)]
        wanted = {field.name for field in kept}
        parts = tuple(part.pruned(wanted | (clock_column(part) if self.clock else set())) for part in self.parts)
        return replace(self, parts=parts, fields=pa.schema(kept))

    # -- words --

    @property
    def line(self) -> str:
        kept = any(part.compared for part in self.parts)
        parts = ["UnionAll", f"columns={','.join(self.schema.names)}"]
        parts += [f"passes on the watermark of {self.clock}"] if self.clock else []
        return "  ".join([*parts, f"state: {'the current rows' if kept else 'none'}", "engine=spark"])

    @property
    def canonical(self) -> Form:
        return members(
            node="union_all",
            columns=fields(self.schema),
            clock=self.clock,
            shifts=list(self.shifts),
            parts=[part.canonical for part in self.parts],
        )
