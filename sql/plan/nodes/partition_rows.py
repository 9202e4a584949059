"""What Over and TopN share: operators that keep the rows of partitions one by one."""

from __future__ import annotations

from collections.abc import Set
from functools import cached_property

from dovetail.joins.dataflow.state_memory import StateMemory
from dovetail.sql.plan.hybrid_state import HybridState
from dovetail.sql.plan.nodes.node import Partitioned


class PartitionRows(Partitioned):
    """Rows of the input, as those beside them in their partition have it.

    closed   its rows come when they are final, and so late that what they become is final too (EMIT ON WINDOW CLOSE)
    """

    closed: bool

    @property
    def updates(self) -> bool:
        """A row that comes can change the values of others, or take the place of one."""
        return not self.closed

    @cached_property
    def nullable(self) -> Set[str]:
        return self.input.nullable | (set(self.partition) - self.input.not_null)

    def memory(self, hybrid: HybridState) -> StateMemory | None:
        return hybrid.of_joins

    @property
    def kept_rows(self) -> str:
        """All rows of the input as the state, for EXPLAIN."""
        parts = ["all rows"] + (["the current rows"] if self.input.compared else [])
        return ", ".join(parts) + (", unbounded: they are kept one by one" if self.input.grows else "")
