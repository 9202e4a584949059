"""SetOperation: INTERSECT and EXCEPT."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import pyarrow as pa

from dovetail.joins.dataflow.ports import SetKind
from dovetail.joins.dataflow.state_memory import StateMemory
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.canonical_values import Form, fields, members
from dovetail.sql.plan.hybrid_state import HybridState
from dovetail.sql.plan.joins.method import Key
from dovetail.sql.plan.nodes.node import Cut, Exchange, Exchanged, Node


@dataclass(frozen=True)
class SetOperation(Exchanged):
    """INTERSECT or EXCEPT of the rows of both inputs, which have the columns ``fields``; each is as often there as
    ``joins.operators.set_operation`` has it.
    """

    kind: SetKind
    left: Node
    right: Node
    fields: pa.Schema

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    def with_inputs(self, *inputs: Node) -> Self:
        left, right = inputs
        return replace(self, left=left, right=right)

    @property
    def schema(self) -> pa.Schema:
        return self.fields

    @property
    def by(self) -> tuple[str, ...]:
        """The columns by which rows are compared: all."""
        return tuple(self.schema.names)

    # -- changes --

    @cached_property
    def updates(self) -> bool:
        """A row of the right side takes one of the left away."""
        return not self.kind.intersects or self.left.updates or self.right.updates

    @cached_property
    def retracts(self) -> bool:
        return not self.kind.intersects or self.left.retracts or self.right.retracts

    @cached_property
    def grows(self) -> bool:
        return self.left.grows and (self.right.grows or not self.kind.intersects)

    def column_grows(self, name: str) -> bool:
        return any(side.column_grows(name) for side in self.inputs)

    @cached_property
    def single_row(self) -> bool:
        return self.left.single_row or (self.kind.intersects and self.right.single_row)

    # -- keys --

    @cached_property
    def unique_keys(self) -> list[Key]:
        """The rows are some of the left side, and of INTERSECT of the right one too."""
        own = [self.by] if self.kind.distinct else []
        right = self.right.unique_keys if self.kind.intersects else []
        return sorted(dict.fromkeys([*own, *self.left.unique_keys, *right]), key=len)

    @cached_property
    def nullable(self) -> Set[str]:
        return set(self.by) - self.not_null

    @cached_property
    def not_null(self) -> Set[str]:
        return self.left.not_null | (self.right.not_null if self.kind.intersects else frozenset())

    # -- execution --

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        return tuple(Exchange(side, self.by) for side in self.inputs)

    @cached_property
    def bucket_key(self) -> Cut | None:
        return tuple(map(self.column, self.by))

    def memory(self, hybrid: HybridState) -> StateMemory | None:
        return hybrid.of_joins

    def filters_below(self, terms: Sequence[Expr]) -> list[Expr]:
        """Equal rows pass alike."""
        return list(terms)

    def pruned(self, needed: Set[str]) -> Node:
        """Rows are compared by all columns."""
        return replace(self, left=self.left.pruned(set(self.by)), right=self.right.pruned(set(self.by)))

    # -- words --

    @property
    def line(self) -> str:
        state = ["each row once, with how often it is on either side"]
        state += ["the current rows"] if any(side.compared for side in self.inputs) else []
        grown = (name for name in self.by if any(side.grows and side.column_grows(name) for side in self.inputs))
        growing = next(grown, "")
        bound = f", unbounded: {growing} has ever more values" if growing else ""
        columns = f"columns={','.join(self.by)}"
        parts = [f"SetOperation {self.kind.value}", columns, f"state: {', '.join(state)}{bound}"]
        return "  ".join([*parts, "engine=spark"])

    @property
    def canonical(self) -> Form:
        return members(
            node="set_operation",
            kind=self.kind.value,
            columns=fields(self.schema),
            left=self.left.canonical,
            right=self.right.canonical,
        )
