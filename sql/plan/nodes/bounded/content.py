"""Content: what a relation holds at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from dovetail.changelog.schema import Column
from dovetail.sql.plan.canonical_values import Form, fields, members
from dovetail.sql.plan.joins.method import Key
from dovetail.sql.plan.nodes.node import Table, declared_forms


@dataclass(frozen=True)
class Content(Table):
    """The rows of a bounded query's relation under its alias: of a stream or view its content, in order of arrival.

    relation  a stream, a view, a dictionary, a relation of the system, or the topic of dead letters
    columns   internal name and declared name of each column
    fields    the columns as they leave
    key       the primary key, internal names; () of rows without one, None of rows that come in no order of their own
    declared  what the relation says of its columns, where it is a stream or a view
    """

    alias: str
    relation: str
    columns: tuple[tuple[str, str], ...]
    fields: pa.Schema
    key: tuple[str, ...] | None = None
    declared: tuple[Column, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        return self.fields

    @cached_property
    def forms(self) -> Mapping[str, str]:
        return declared_forms(self.columns, self.declared)

    @property
    def unique_keys(self) -> list[Key]:
        return [self.key] if self.key else []

    def pruned(self, needed: Set[str]) -> Content:
        columns = tuple(column for column in self.columns if column[0] in needed) or self.columns[:1]
        return replace(self, columns=columns, fields=pa.schema([self.fields.field(name) for name, _ in columns]))

    @property
    def line(self) -> str:
        return f"content of {self.relation} as {self.alias}  read once"

    @property
    def canonical(self) -> Form:
        return members(node="content", relation=self.relation, columns=fields(self.fields))
