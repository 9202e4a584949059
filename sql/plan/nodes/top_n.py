"""TopN: the first rows of partitions."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from dovetail.joins.partitions.ordering import Rank, SortKey
from dovetail.sql.plan.canonical_values import Form, members
from dovetail.sql.plan.joins.method import Key
from dovetail.sql.plan.nodes.node import Node
from dovetail.sql.plan.nodes.partition_rows import PartitionRows


@dataclass(frozen=True)
class TopN(PartitionRows):
    """Of the rows of ``input`` that agree in the columns ``by`` those whose rank in ``order`` is from ``first`` to
    ``last``; with the rank in the column ``number``, unless that is ''.
    """

    by: tuple[str, ...]
    order: tuple[SortKey, ...]
    rank: Rank
    first: int
    last: int
    number: str = ""
    closed: bool = False

    @property
    def partition(self) -> tuple[str, ...]:
        return self.by

    @cached_property
    def schema(self) -> pa.Schema:
        number = [pa.field(self.number, pa.int64())] if self.number else []
        return pa.schema([*self.input.schema, *number])

    @property
    def single(self) -> bool:
        """Whether no more than one row of those that agree in ``by`` is let through."""
        return self.rank is Rank.ROW_NUMBER and self.first >= self.last

    @cached_property
    def grows(self) -> bool:
        return bool(self.by) and self.input.grows

    def column_grows(self, name: str) -> bool:
        return name in self.input.schema.names and self.input.column_grows(name)

    @property
    def single_row(self) -> bool:
        return self.single and not self.by

    @cached_property
    def unique_keys(self) -> list[Key]:
        """Those of the input, and the row number in a partition; of a partition with one row that partition."""
        numbered = [(*self.by, self.number)] if self.number and self.rank is Rank.ROW_NUMBER else []
        return sorted([*([self.by] if self.single else []), *self.input.unique_keys, *numbered], key=len)

    @cached_property
    def not_null(self) -> Set[str]:
        return self.input.not_null | ({self.number} if self.number else set())

    def keeps(self, below: Node) -> bool:
        return below.retracts or below.compared

    def pruned(self, needed: Set[str]) -> Node:
        number = self.number if self.number in needed else ""
        wanted = (needed - {self.number}) | set(self.by) | {key.column for key in self.order}
        return replace(self, input=self.input.pruned(wanted or {self.input.schema.names[0]}), number=number)

    @property
    def line(self) -> str:
        order = ", ".join(map(_term, self.order)) or "none"
        bounds = f"{self.rank.value} {self.first} to {self.last}" + (f" as {self.number}" if self.number else "")
        parts = ["TopN", f"by={','.join(self.by) or 'none'}", f"order={order}", bounds, f"state: {self._state}"]
        return "  ".join([*parts, "engine=spark"])

    @property
    def _state(self) -> str:
        """Of rows that stay those behind the last that is let through are of no use any more."""
        if self.input.retracts:
            return self.kept_rows
        most = f"rows up to {self.rank.value} {self.last}"
        if self.rank is Rank.ROW_NUMBER:
            most = "first row" if self.last == 1 else f"first {self.last} rows"
        growing = next((name for name in self.by if self.input.grows and self.input.column_grows(name)), "")
        return f"the {most} per partition" + (f", unbounded: {growing} has ever more values" if growing else "")

    @property
    def canonical(self) -> Form:
        return members(
            node="top_n",
            by=list(self.by),
            order=[[key.column, key.descending, key.nulls_first] for key in self.order],
            rank=self.rank.value,
            first=self.first,
            last=self.last,
            number=self.number,
            closed=self.closed,
            input=self.input.canonical,
        )


def _term(key: SortKey) -> str:
    return f"{key.column}{' desc' if key.descending else ''} nulls {'first' if key.nulls_first else 'last'}"
