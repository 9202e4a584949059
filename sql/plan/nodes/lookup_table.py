"""LookupTable: what rows are looked up in."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

import pyarrow as pa

from dovetail.changelog.schema import Column
from dovetail.joins.dataflow.lookup import LookupTarget
from dovetail.sql.plan.canonical_values import Form, members
from dovetail.sql.plan.joins.method import Key
from dovetail.sql.plan.nodes.node import Table, declared_forms
from dovetail.sql.syntax.statements import Index


class Cover(StrEnum):
    """What the equalities of a lookup join must cover of the columns that it asks by."""

    KEY = "the primary key, exactly"
    """Dictionaries."""
    ANY = "any columns"
    """Tables of other databases."""
    PREFIX = "the primary key, a prefix of it, or of an index"
    """Direct joins."""
    INDEXED = "the whole primary key, or a prefix of an index"
    """Process-time temporal joins."""


_CALLED = {
    LookupTarget.DICTIONARY: "dictionary",
    LookupTarget.EXTERNAL: "external table",
    LookupTarget.STREAM: "rows of",
}


@dataclass(frozen=True)
class LookupTable(Table):
    """The right side of a lookup join under its alias. No stream: its changes emit nothing.

    columns      internal and declared name of each column that travels
    declared     all columns, in the order of a row
    primary_key  names of the columns that no two rows share; may be none
    index        the one index that the query names in the place of the table, if it does
    kept         how the rows are kept, for EXPLAIN
    """

    alias: str
    target: LookupTarget
    name: str
    cover: Cover
    columns: tuple[tuple[str, str], ...]
    declared: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    indexes: tuple[Index, ...] = ()
    index: str = ""
    kept: str = ""

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(internal, self.type_of(name)) for internal, name in self.columns])

    @cached_property
    def forms(self) -> Mapping[str, str]:
        return declared_forms(self.columns, self.declared)

    def type_of(self, declared: str) -> pa.DataType:
        return next(column.type for column in self.declared if column.name == declared)

    def internal(self, declared: str) -> str:
        return f"{self.alias}.{declared}"

    @cached_property
    def unique_keys(self) -> list[Key]:
        """The primary key, as far as it travels."""
        travels = {name: internal for internal, name in self.columns}
        key = self.primary_key
        return [tuple(travels[name] for name in key)] if key and set(key) <= set(travels) else []

    @cached_property
    def not_null(self) -> Set[str]:
        return frozenset().union(*self.unique_keys)

    def pruned(self, needed: Set[str]) -> LookupTable:
        return replace(self, columns=tuple(pair for pair in self.columns if pair[0] in needed))

    @property
    def line(self) -> str:
        alias = f" as {self.alias}" if self.alias != self.name else ""
        parts = [f"{_CALLED[self.target]} {self.name}{alias}"]
        parts += [self.kept] if self.kept else []
        parts += [f"key={','.join(self.primary_key)}"] if self.primary_key else []
        return "  ".join([*parts, f"columns={','.join(name for _, name in self.columns) or 'none'}"])

    @property
    def canonical(self) -> Form:
        """Its index is that of the join."""
        return members(
            node="lookup_table",
            alias=self.alias,
            target=self.target.value,
            name=self.name,
            columns=[
                {"name": internal, "of": name, "type": str(self.type_of(name))} for internal, name in self.columns
            ],
            primary_key=list(self.primary_key),
        )
