"""Over: window functions."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa
from sqlglot import exp

from dovetail.joins.partitions.ordering import Rank
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.canonical_values import Form, computed, members
from dovetail.sql.plan.joins.method import Key
from dovetail.sql.plan.nodes.keyed import Keyed
from dovetail.sql.plan.nodes.node import Node, names_read
from dovetail.sql.plan.nodes.partition_rows import PartitionRows


@dataclass(frozen=True)
class Over(PartitionRows):
    """Each row of ``input`` with what window functions compute from the rows that agree with it in the columns ``by``.

    calls    columns: window functions over the columns of the input, without their PARTITION BY
    of_gaps  a row that follows adds rows above, and changes nothing of those that are there (GAP_FILL)
    """

    by: tuple[str, ...]
    calls: tuple[tuple[str, Expr], ...]
    of_gaps: bool = False
    closed: bool = False

    @property
    def partition(self) -> tuple[str, ...]:
        return self.by

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([*self.input.schema, *(pa.field(name, call.type) for name, call in self.calls)])

    @cached_property
    def row_numbers(self) -> tuple[str, ...]:
        """The columns that number the rows of a partition."""
        return tuple(name for name, call in self.calls if _is_row_number(call))

    def column_grows(self, name: str) -> bool:
        return self.input.column_grows(name) if name in self.by else self.grows

    @property
    def single_row(self) -> bool:
        return self.input.single_row

    @cached_property
    def unique_keys(self) -> list[Key]:
        return sorted([*self.input.unique_keys, *((*self.by, number) for number in self.row_numbers)], key=len)

    @cached_property
    def not_null(self) -> Set[str]:
        return self.input.not_null | set(self.row_numbers)

    def pruned(self, needed: Set[str]) -> Node:
        """Without a call that is read the rows themselves are left."""
        calls = tuple((name, call) for name, call in self.calls if name in needed)
        passed = needed - {name for name, _ in self.calls}
        first = {self.input.schema.names[0]}
        if not calls:
            return self._changes.pruned(passed or first)
        wanted = passed | set(self.by) | names_read(*(call for _, call in calls))
        return replace(self, input=self.input.pruned(wanted or first), calls=calls)

    @property
    def _changes(self) -> Node:
        """The rows of the input as changes: fused with it, the operator has made these of upserts."""
        upserts = self.input.upserts
        return self.input if upserts is None else Keyed(self.input, upserts.key)

    @property
    def line(self) -> str:
        calls = ", ".join(call.readable.lower() for _, call in self.calls)
        parts = ["Over", f"by={','.join(self.by) or 'none'}", calls, f"state: {self.kept_rows}, with their values"]
        return "  ".join([*parts, "engine=spark"])

    @property
    def canonical(self) -> Form:
        return members(
            node="over",
            by=list(self.by),
            calls=computed(self.calls),
            closed=self.closed,
            input=self.input.canonical,
        )


def _is_row_number(call: Expr) -> bool:
    window = call.tree
    return isinstance(window, exp.Window) and window.this.name.lower() == Rank.ROW_NUMBER
