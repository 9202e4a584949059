"""Keyed: upserts become changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from dovetail.joins.dataflow.ports import Watermark
from dovetail.joins.dataflow.state_memory import StateMemory
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.canonical_values import Form, members
from dovetail.sql.plan.hybrid_state import HybridState
from dovetail.sql.plan.joins.method import Key
from dovetail.sql.plan.nodes.node import Node, Partitioned


@dataclass(frozen=True)
class Keyed(Partitioned):
    """Upserts in, changes out, by ``primary_key``; a level of its own. The upserts are those of a scan, or the rows of
    a query that takes none back, ``changelog(x, k)``. ``by_arrival``: the changes tell when their records came."""

    primary_key: tuple[str, ...]
    by_arrival: bool = False

    @property
    def schema(self) -> pa.Schema:
        return self.input.schema

    @property
    def partition(self) -> tuple[str, ...]:
        return self.primary_key

    @property
    def updates(self) -> bool:
        return True

    @property
    def grows(self) -> bool:
        return False

    def column_rises(self, name: str) -> bool:
        return self.input.column_rises(name)

    @property
    def unique_keys(self) -> list[Key]:
        return [self.primary_key]

    @cached_property
    def nullable(self) -> Set[str]:
        return set(self.primary_key) - self.not_null

    @property
    def equal_columns(self) -> Mapping[str, Set[str]]:
        return {}

    @property
    def output_watermark(self) -> Watermark | None:
        return self.input.output_watermark

    def memory(self, hybrid: HybridState) -> StateMemory | None:
        return hybrid.memory

    @property
    def shared_with(self) -> str:
        return self.input.shared_with

    def pruned(self, needed: Set[str]) -> Node:
        return replace(self, input=self.input.pruned(needed | set(self.primary_key)))

    def filters_below(self, terms: Sequence[Expr]) -> list[Expr]:
        """A row that fails a condition still takes the place of the one before it."""
        return []

    @property
    def line(self) -> str:
        order = "  in order of arrival" if self.by_arrival else ""
        state = "state: the current row of each key, until it is deleted"
        return f"Keyed  key={','.join(self.primary_key)}{order}  {state}  engine=spark"

    @property
    def canonical(self) -> Form:
        return members(
            node="keyed",
            primary_key=list(self.primary_key),
            by_arrival=self.by_arrival,
            input=self.input.canonical,
        )
