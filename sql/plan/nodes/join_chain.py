"""JoinChain: several joins as one node."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from typing import Self

import pyarrow as pa

from dovetail.changelog.errors import InternalError
from dovetail.joins.dataflow.ports import Watermark
from dovetail.joins.dataflow.state_memory import StateMemory
from dovetail.sql.plan.hybrid_state import HybridState
from dovetail.sql.plan.joins.method import Key
from dovetail.sql.plan.nodes.join import Join
from dovetail.sql.plan.nodes.node import Node, Operator
from dovetail.sql.plan.nodes.window_column import WindowColumn


@dataclass(frozen=True)
class JoinChain(Operator):
    """The ``joins`` uppermost joins of ``chain`` as one node.

    Its rows are those of ``chain``, a tree of joins of two, whose left sides are the joins before; so what is true of
    them is asked of it.
    """

    chain: Join
    joins: int

    @property
    def links(self) -> tuple[Join, ...]:
        """The joins of two, each over the one before."""
        found = [self.chain]
        while len(found) < self.joins:
            below = found[-1].left
            if not isinstance(below, Join):
                raise InternalError(f"a chain of {self.joins} joins ends after {len(found)}")
            found.append(below)
        return tuple(reversed(found))

    @property
    def inputs(self) -> tuple[Node, ...]:
        first, *others = self.links
        return (first.left, first.right, *(link.right for link in others))

    def with_inputs(self, *inputs: Node) -> Self:
        first, second, *others = inputs
        lowest, *links = self.links
        chain = lowest.with_inputs(first, second)
        for link, right in zip(links, others, strict=True):
            chain = link.with_inputs(chain, right)
        return replace(self, chain=chain)

    @property
    def schema(self) -> pa.Schema:
        return self.chain.schema

    @property
    def updates(self) -> bool:
        return self.chain.updates

    @property
    def retracts(self) -> bool:
        return self.chain.retracts

    @property
    def grows(self) -> bool:
        return self.chain.grows

    def column_grows(self, name: str) -> bool:
        return self.chain.column_grows(name)

    @property
    def single_row(self) -> bool:
        return self.chain.single_row

    @property
    def unique_keys(self) -> list[Key]:
        return self.chain.unique_keys

    @property
    def nullable(self) -> Set[str]:
        return self.chain.nullable

    @property
    def not_null(self) -> Set[str]:
        return self.chain.not_null

    @property
    def equal_columns(self) -> Mapping[str, Set[str]]:
        return self.chain.equal_columns

    @property
    def output_watermark(self) -> Watermark | None:
        return self.chain.output_watermark

    def window_column(self, name: str) -> WindowColumn | None:
        return self.chain.window_column(name)

    def memory(self, hybrid: HybridState) -> StateMemory | None:
        return hybrid.of_joins

    def pruned(self, needed: Set[str]) -> Self:
        return replace(self, chain=self.chain.pruned(needed))
