"""ValueRows: rows that stand in the query itself."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.canonical_values import Form, expressions, fields, members
from dovetail.sql.plan.joins.method import Key
from dovetail.sql.plan.nodes.node import Node, Table


@dataclass(frozen=True)
class ValueRows(Table):
    """VALUES: ``rows`` with the columns ``fields``. A SELECT without FROM has one row without columns."""

    fields: pa.Schema
    rows: tuple[tuple[Expr, ...], ...]

    @property
    def schema(self) -> pa.Schema:
        return self.fields

    @cached_property
    def forms(self) -> Mapping[str, str]:
        """Of a column all of whose values that are not NULL have it."""
        columns = zip(*self.rows, strict=True)
        found = [{one.form for one in column if not pa.types.is_null(one.type)} for column in columns]
        return {
            name: min(forms)
            for name, forms in zip(self.fields.names, found, strict=True)
            if len(forms) == 1 and min(forms)
        }

    @property
    def single_row(self) -> bool:
        return len(self.rows) <= 1

    @property
    def unique_keys(self) -> list[Key]:
        return []

    def pruned(self, needed: Set[str]) -> Node:
        return self

    @property
    def line(self) -> str:
        return f"Values  rows={len(self.rows)}  columns={','.join(self.fields.names) or 'none'}"

    @property
    def canonical(self) -> Form:
        rows: list[Form] = [expressions(row) for row in self.rows]
        return members(node="values", columns=fields(self.fields), rows=rows)
