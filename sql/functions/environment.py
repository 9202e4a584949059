"""What a tree is translated in: the types of the columns that it may name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.formats.text_forms import INTERVAL, JSONB
from dovetail.sql.expressions.expression import KIND, Expr, null_of, without_subqueries
from dovetail.sql.expressions.partitions.window_calls import over_others
from dovetail.sql.functions import interval_columns
from dovetail.sql.functions.aggregate_calls import aggregates_in, is_aggregate_call, result_type
from dovetail.sql.functions.documents import JSON
from dovetail.sql.functions.typed import Typed
from dovetail.sql.syntax.rules import Rules


@dataclass(frozen=True)
class Environment:
    """What a tree may name, and where it stands.

    types  of the columns, and of the arguments of the lambdas around it
    place  in the statement, for errors
    rules  those of the engine that the query is read as
    forms  of columns whose texts have one (``changelog.formats.text_forms``)
    """

    types: Mapping[str, pa.DataType]
    place: str = ""
    rules: Rules = Rules.TIMEPLUS
    forms: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def schema(self) -> pa.Schema:
        return pa.schema(list(self.types.items()))

    def ask(self, tree: exp.Expr) -> pa.DataType:
        """The type that the engine gives ``tree``."""
        return self._of_rows(self._without_aggregates(tree))

    def _of_rows(self, tree: exp.Expr) -> pa.DataType:
        return Expr.over(without_subqueries(tree), self.schema, self.place).type

    def _without_aggregates(self, tree: exp.Expr) -> exp.Expr:
        """The tree with a value of the type of each aggregate and subquery in its place: types are asked of rows."""
        if tree.find(exp.AggFunc, exp.Query, exp.Exists) is None:
            return tree
        if is_aggregate_call(tree):
            return self._over_values(tree)
        return tree.copy().transform(self._value)

    def _value(self, node: exp.Expr) -> exp.Expr:
        if (known := node.meta.get(KIND)) is not None:
            return null_of(known)
        if isinstance(node, exp.Window):
            return over_others(node, self._value)
        if not is_aggregate_call(node):
            return node
        return null_of(self.aggregate_type(node) or self._of_rows(self._over_values(node)))

    def _over_values(self, call: exp.Expr) -> exp.Expr:
        """An aggregate over values of the types of those within it, as a window function over groups has them."""
        parts = (call.this if isinstance(call, exp.Filter) else call).iter_expressions()
        if all(next(aggregates_in(part), None) is None for part in parts):
            return call
        made = call.copy()
        for part in list((made.this if isinstance(made, exp.Filter) else made).iter_expressions()):
            part.replace(part.copy().transform(self._value))
        return made

    def aggregate_type(self, tree: exp.Expr) -> pa.DataType | None:
        """The type of an aggregate of the engine that streams have; None for others."""
        return result_type(without_subqueries(self._over_values(tree)), self.schema, self.place, self.rules)

    def type_of(self, name: str) -> pa.DataType | None:
        """The type of a column as functions see it; None where there is no such column."""
        if self.reads_interval(name):
            return interval_columns.INTERVAL
        return JSON if self.forms.get(name) == JSONB else self.types.get(name)

    def reads_interval(self, name: str) -> bool:
        """Whether the texts of a column are intervals, which Timeplus has no columns of."""
        return self.rules is Rules.RISINGWAVE and self.forms.get(name) == INTERVAL

    def known(self, tree: exp.Expr, kind: pa.DataType | None = None) -> Typed:
        return Typed(tree, self.ask, kind)

    def with_names(self, types: Mapping[str, pa.DataType]) -> Environment:
        return replace(self, types={**self.types, **types})
