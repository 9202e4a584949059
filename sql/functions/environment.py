"""What a tree is translated in: the types of the columns that it may name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import pyarrow as pa
from sqlglot import exp

from sql.expressions import engine
from sql.expressions.engine import type_name
from sql.expressions.evaluate import types_of
from sql.functions.aggregate_calls import result_type, with_filter
from sql.functions.typed import Typed
from sql.syntax.rules import Rules

KIND = "type"
"""The key in the metadata of a tree under which its type stands, where the engine could not tell it."""


@dataclass(frozen=True)
class Environment:
    """The types of the columns that a tree may name."""

    types: Mapping[str, pa.DataType]
    place: str = ""
    rules: Rules = Rules.TIMEPLUS

    def ask(self, tree: exp.Expr) -> pa.DataType:
        """The type that the engine gives ``tree``."""
        tree = self._without_aggregates(tree)
        return _asked(engine.text(tree), self._named(tree), self.place)

    def _named(self, tree: exp.Expr) -> tuple[tuple[str, pa.DataType], ...]:
        """The columns that a tree reads, with their types."""
        names = dict.fromkeys(column.name for column in tree.find_all(exp.Column) if column.name in self.types)
        return tuple((name, self.types[name]) for name in names)

    def _without_aggregates(self, tree: exp.Expr) -> exp.Expr:
        """The tree with a value of the type of each aggregate and subquery in its place: types are asked of rows."""

        def value(node: exp.Expr) -> exp.Expr:
            if (known := node.meta.get(KIND)) is not None:
                return exp.Cast(this=exp.Null(), to=exp.DataType.build(type_name(known), dialect="duckdb"))
            if not with_filter(node):
                return node
            kind = result_type(node, self.types, self.place, self.rules) or _asked(
                engine.text(node), self._named(node), self.place
            )
            return exp.Cast(this=exp.Null(), to=exp.DataType.build(type_name(kind), dialect="duckdb"))

        if tree.find(exp.AggFunc, exp.Query, exp.Exists) is None or with_filter(tree) or tree.find(exp.Window):
            return tree
        return tree.copy().transform(value)

    def known(self, tree: exp.Expr, kind: pa.DataType | None = None) -> Typed:
        return Typed(tree, self.ask, kind)

    def with_names(self, types: Mapping[str, pa.DataType]) -> Environment:
        return replace(self, types={**self.types, **types})


@lru_cache(maxsize=8192)
def _asked(sql: str, types: tuple[tuple[str, pa.DataType], ...], place: str) -> pa.DataType:
    return types_of(pa.schema(list(types)), [sql], place)[0]
