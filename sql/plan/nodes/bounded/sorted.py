"""Sorted: rows in an order, and how many of them."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace

import pyarrow as pa

from dovetail.joins.partitions.ordering import SortKey
from dovetail.sql.plan.canonical_values import Form, members
from dovetail.sql.plan.joins.method import Key
from dovetail.sql.plan.nodes.node import Chained, Node


@dataclass(frozen=True)
class Sorted(Chained):
    """ORDER BY with LIMIT and OFFSET: of the rows of ``input``, in ``order``, ``limit`` behind the first ``offset``;
    all of them for None. Without an order rows stay in theirs. Rows that change have no such order: ``TopN``.
    """

    order: tuple[SortKey, ...] = ()
    limit: int | None = None
    offset: int = 0

    @property
    def schema(self) -> pa.Schema:
        return self.input.schema

    @property
    def unique_keys(self) -> list[Key]:
        return self.input.unique_keys

    @property
    def single_row(self) -> bool:
        return self.input.single_row or (self.limit is not None and self.limit <= 1)

    def pruned(self, needed: Set[str]) -> Node:
        wanted = needed | {key.column for key in self.order}
        return replace(self, input=self.input.pruned(wanted or {self.input.schema.names[0]}))

    @property
    def line(self) -> str:
        terms = ", ".join(f"{key.column}{' desc' if key.descending else ''}" for key in self.order) or "none"
        limit = [] if self.limit is None else [f"limit={self.limit}"]
        return "  ".join(["Sorted", f"order={terms}", *limit, *([f"offset={self.offset}"] if self.offset else [])])

    @property
    def canonical(self) -> Form:
        return members(
            node="sorted",
            order=[[key.column, key.descending, key.nulls_first] for key in self.order],
            limit=self.limit,
            offset=self.offset,
            input=self.input.canonical,
        )
