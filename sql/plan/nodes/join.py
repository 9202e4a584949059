"""Join: two streams."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Self

import pyarrow as pa

from dovetail.joins.dataflow.ports import JoinKind, Pad, Watermark
from dovetail.joins.dataflow.state_memory import StateMemory
from dovetail.sql.expressions.expression import Expr, coalesce
from dovetail.sql.expressions.predicates import conjunction
from dovetail.sql.plan.canonical_values import Form, members
from dovetail.sql.plan.hybrid_state import HybridState
from dovetail.sql.plan.joins import DynamicFilter, JoinMethod
from dovetail.sql.plan.joins.method import JoinInputs, Key, KeyedSides, current
from dovetail.sql.plan.nodes.event_time import EventTime
from dovetail.sql.plan.nodes.joined import canonical_join, joined_columns, residual_text
from dovetail.sql.plan.nodes.node import HIDDEN, Cut, Exchange, Exchanged, Node, clock_column, names_read
from dovetail.sql.plan.nodes.passage import Passage
from dovetail.sql.plan.nodes.window_column import WindowColumn


@dataclass(frozen=True)
class Join(Exchanged):
    """Two streams, joined by equality of ``keys`` (pairs left, right) and ``residual``; ``method`` says the rest.

    Before the rule ``join_keys`` has run, the whole condition stands in ``on``, conjunct by conjunct.

    place             where it is written, for errors
    mark              of MARK: the column that says whether a left row matches something
    max_rows_per_key  a record that would be one more row of its key on its side is a dead letter; None: none is. Of a
                      chain of joins that is one, its last says it
    """

    kind: JoinKind
    method: JoinMethod
    left: Node
    right: Node
    on: tuple[Expr, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    null_safe: tuple[bool, ...] = ()
    residual: Expr | None = None
    pad: Pad = Pad.NULL
    max_buffered_bytes: int | None = None
    place: str = ""
    mark: str = ""
    max_rows_per_key: int | None = None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    def with_inputs(self, *inputs: Node) -> Self:
        left, right = inputs
        return replace(self, left=left, right=right)

    @cached_property
    def schema(self) -> pa.Schema:
        return joined_columns(self.kind, self.left.schema, self.right.schema, self.mark)

    @cached_property
    def sides(self) -> JoinInputs:
        """What the method goes by."""
        return JoinInputs(self.left.as_join_input, self.right.as_join_input)

    @property
    def pairs(self) -> tuple[tuple[str, str, bool], ...]:
        """Left column, right column, and whether NULL equals NULL there."""
        safe = self.null_safe or (False,) * len(self.keys)
        return tuple((left, right, same) for (left, right), same in zip(self.keys, safe, strict=True))

    # -- changes --

    @cached_property
    def updates(self) -> bool:
        return self.method.updates(self.kind, self.left.updates, self.right.updates)

    @cached_property
    def retracts(self) -> bool:
        return self.method.updates(self.kind, self.left.retracts, self.right.retracts)

    @cached_property
    def grows(self) -> bool:
        left = self.left.grows and not self.method.empties(self.kind)
        return left or (not self.kind.is_existence and self.right.grows)

    def column_grows(self, name: str) -> bool:
        """A mark is of neither side: it has two values."""
        sides = [] if self.method.empties(self.kind) else self.inputs
        return any(side.column_grows(name) for side in sides if name in side.schema.names)

    @cached_property
    def single_row(self) -> bool:
        return self.left.single_row and (self.right.single_row or self.kind.is_existence)

    # -- keys --

    @cached_property
    def unique_keys(self) -> list[Key]:
        left, right = self.left.unique_keys, self.right.unique_keys
        return self.method.unique_keys(KeyedSides(self.kind, self.pad, self.keys, left, right))

    @cached_property
    def nullable(self) -> Set[str]:
        return self.left.nullable | self.right.nullable | self.padded

    @property
    def padded(self) -> Set[str]:
        """The columns that a row without a match leaves NULL."""
        left = self.left.schema.names if self.kind in (JoinKind.RIGHT, JoinKind.FULL) else []
        right = self.right.schema.names if self.kind in (JoinKind.LEFT, JoinKind.FULL) else []
        return {*left, *right}

    @cached_property
    def not_null(self) -> Set[str]:
        return (self.left.not_null | self.right.not_null) - self.nullable

    @cached_property
    def equal_columns(self) -> Mapping[str, Set[str]]:
        found = {name: set(others) for side in self.inputs for name, others in side.equal_columns.items()}
        for left, right in self.keys:
            if self.kind in (JoinKind.INNER, JoinKind.LEFT):
                found.setdefault(right, set()).add(left)
            if self.kind in (JoinKind.INNER, JoinKind.RIGHT):
                found.setdefault(left, set()).add(right)
        return found

    # -- event time --

    @cached_property
    def output_watermark(self) -> Watermark | None:
        return self.method.watermark(self.sides)

    def watermark_over(self, column: str) -> Watermark | None:
        return self.method.with_clock(column).watermark(self.sides)

    def column_time(self, name: str) -> EventTime | None:
        return None if self.updates or name not in self.method.passing_times else Passage(name, Fraction(0), self)

    def clock_shifts(self, column: str) -> tuple[int, ...] | None:
        return self.method.with_clock(column).clock_shifts(self.sides)

    def window_column(self, name: str) -> WindowColumn | None:
        return (self.left if name in self.left.schema.names else self.right).window_column(name)

    # -- execution --

    @property
    def left_cut(self) -> tuple[str, ...]:
        """The columns of the left side by which its rows are cut into buckets: the keys of the join. Without an
        equality those that find a row again.
        """
        keys = tuple(left for left, _ in self.keys)
        return tuple(name for name in self.left.retraction_key if name not in keys) if self.method.everywhere else keys

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        left = Exchange(self.left, self.left_cut)
        right = Exchange(self.right, tuple(right for _, right in self.keys), self.method.everywhere)
        return (left,) if self.right.shared_with else (left, right)

    @cached_property
    def bucket_key(self) -> Cut | None:
        if self.method.everywhere:
            return tuple(map(self.column, self.left_cut))
        return tuple(self._cut(left, right) for left, right in self.keys)

    def _cut(self, left: str, right: str) -> Expr:
        """The key that a row was cut by; of two equal ones rather that which is no hidden column."""
        first, second = self.left.column(left), self.right.column(right)
        if self.kind == JoinKind.FULL:
            return Expr(coalesce(first, second), first.type)
        by_right = self.kind == JoinKind.RIGHT or (self.kind == JoinKind.INNER and left.startswith(HIDDEN))
        return second if by_right else first

    def memory(self, hybrid: HybridState) -> StateMemory | None:
        return hybrid.of_joins

    def keeps(self, below: Node) -> bool:
        return below is self.right or not self.method.answers_once or self.kind is JoinKind.FULL

    # -- rules --

    def pruned(self, needed: Set[str]) -> Self:
        wanted = needed | {name for pair in self.keys for name in pair} | names_read(self.residual)
        wanted |= clock_column(self.left) | clock_column(self.right) | self.method.columns_read
        # The one row of a dynamic filter that nothing above reads adds nothing to a left row: it is left or not.
        alone = isinstance(self.method, DynamicFilter) and needed.isdisjoint(self.right.schema.names)
        kind = JoinKind.SEMI if alone and self.kind is JoinKind.INNER else self.kind
        return replace(self, kind=kind, left=self.left.pruned(wanted), right=self.right.pruned(wanted))

    # -- words --

    @property
    def line(self) -> str:
        written = conjunction(self.on)
        on = f"on={self.equalities or 'every row'}" if written is None else f"on {written.readable}"
        parts = [f"{self.method.operator} {self.kind.value}", *([f"as {self.mark}"] if self.mark else []), on]
        parts += [*self.method.conditions(self.sides), *residual_text(self.residual)]
        if self.pad == Pad.DEFAULT:
            parts.append("unmatched=default")
        both = f"of both sides, once, {current(self.sides.left)}"
        state = both if self.right.shared_with else self.method.state(self.kind, self.sides)
        return "  ".join([*parts, *self.method.emission(), f"state: {state}", *self.limits, "engine=spark"])

    @property
    def equalities(self) -> str:
        return ",".join(f"{left}{' is ' if same else '='}{right}" for left, right, same in self.pairs)

    @property
    def limits(self) -> list[str]:
        """How much it may keep, for EXPLAIN."""
        limits = [] if self.max_buffered_bytes is None else [f"max_buffered_bytes={self.max_buffered_bytes}"]
        most = self.max_rows_per_key
        return limits if most is None else [*limits, f"max_fan_out={most} rows of a key on a side, dead letters beyond"]

    @property
    def canonical(self) -> Form:
        own = members(
            node="join",
            how=self.method.canonical,
            null_safe=list(self.null_safe),
            mark=self.mark,
            budgeted=self.max_rows_per_key is not None,
            left=self.left.canonical,
            right=self.right.canonical,
        )
        return {**own, **canonical_join(self.kind, self.pad, self.on, self.keys, self.residual)}
