"""Waiting: rows that leave once, when they are final."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from dovetail.joins.aggregates.aggregation import Closing
from dovetail.joins.dataflow.state_memory import StateMemory
from dovetail.sql.plan.canonical_values import Form, closing, members
from dovetail.sql.plan.hybrid_state import HybridState
from dovetail.sql.plan.joins.method import Key
from dovetail.sql.plan.nodes.node import Node, Partitioned, clock_column


@dataclass(frozen=True)
class Waiting(Partitioned):
    """The rows of ``input``, of which none is taken back, each when its time is behind the watermark (EMIT ON WINDOW
    CLOSE); as ``joins.partitions.waiting`` has it. Those that agree in ``by`` wait in one bucket.
    """

    by: tuple[str, ...]
    closing: Closing

    @property
    def partition(self) -> tuple[str, ...]:
        return self.by

    @cached_property
    def schema(self) -> pa.Schema:
        return self.input.schema

    @property
    def updates(self) -> bool:
        return False

    def column_grows(self, name: str) -> bool:
        return self.input.column_grows(name)

    @property
    def unique_keys(self) -> list[Key]:
        return self.input.unique_keys

    @cached_property
    def not_null(self) -> Set[str]:
        return self.input.not_null | {self.closing.column}

    def memory(self, hybrid: HybridState) -> StateMemory | None:
        return hybrid.of_groups

    def pruned(self, needed: Set[str]) -> Node:
        own = {self.closing.column, *self.by} | clock_column(self.input)
        return replace(self, input=self.input.pruned(needed | own))

    @property
    def line(self) -> str:
        parts = ["Waiting", f"by={','.join(self.by) or 'none'}", f"every row once, when {self.closing.column} is over"]
        return "  ".join([*parts, "state: the rows that wait", "engine=spark"])

    @property
    def canonical(self) -> Form:
        return members(node="waiting", by=list(self.by), closing=closing(self.closing), input=self.input.canonical)
