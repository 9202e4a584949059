"""Static: a table that is read once."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from dovetail.sql.plan.canonical_values import Form, fields, members
from dovetail.sql.plan.joins.method import Key
from dovetail.sql.plan.nodes.node import Table


@dataclass(frozen=True)
class Static(Table):
    """A FROM item that does not change: the result of ``sql``, with the columns ``fields``, over the tables that
    ``relations`` name, read at the start. ``single``: one row at most;
    ``formed``: the form of each column whose texts have one.
    """

    alias: str
    relations: tuple[str, ...]
    sql: str
    fields: pa.Schema
    single: bool = False
    formed: tuple[tuple[str, str], ...] = ()

    @property
    def schema(self) -> pa.Schema:
        return self.fields

    @cached_property
    def forms(self) -> Mapping[str, str]:
        return dict(self.formed)

    @property
    def single_row(self) -> bool:
        return self.single

    @property
    def unique_keys(self) -> list[Key]:
        return []

    def pruned(self, needed: Set[str]) -> Static:
        return replace(self, fields=pa.schema([field for field in self.fields if field.name in needed]))

    @property
    def line(self) -> str:
        return f"static {self.alias}  table({', table('.join(self.relations)}), read once at the start"

    @property
    def canonical(self) -> Form:
        columns = fields(self.fields)
        return members(node="static", alias=self.alias, relations=list(self.relations), sql=self.sql, columns=columns)
