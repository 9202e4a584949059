"""How a query reads its expressions.

Over streams what a subquery, or a lookup, answers is a column of the rows that an operator adds; a bounded query keeps
the subquery where it stands: ``sql.bind.bounded.bounded_expressions``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from sqlglot import exp

from dovetail.sql.bind.from_clause.from_item import FromItem
from dovetail.sql.bind.lookup.lookups import Lookups
from dovetail.sql.bind.resolve import Expressions, resolved, resolved_condition, resolved_on
from dovetail.sql.bind.scope import Scope
from dovetail.sql.bind.subqueries.subqueries import HiddenColumn, Subqueries


class QueryExpressions(Expressions, Protocol):
    """With what the rows need for them."""

    def read(
        self, from_item: FromItem, expression: exp.Expr, clause: str
    ) -> tuple[FromItem, exp.Expr, list[HiddenColumn]]:
        """``expression`` over columns that the rows are yet to be joined with: the answers of its subqueries."""
        ...

    def looked_up(self, from_item: FromItem, expression: exp.Expr, clause: str) -> tuple[FromItem, exp.Expr]:
        """``expression`` over rows that have what it looks up."""
        ...


@dataclass(frozen=True)
class StreamExpressions:
    """Those over streams."""

    lookups: Lookups
    subqueries: Subqueries

    @property
    def bounded(self) -> bool:
        return False

    def read(
        self, from_item: FromItem, expression: exp.Expr, clause: str
    ) -> tuple[FromItem, exp.Expr, list[HiddenColumn]]:
        return self.subqueries.values(from_item, expression, clause)

    def looked_up(self, from_item: FromItem, expression: exp.Expr, clause: str) -> tuple[FromItem, exp.Expr]:
        return self.lookups.within(from_item, expression, clause)

    def value(self, expression: exp.Expr, scope: Scope, clause: str) -> exp.Expr:
        return resolved(expression, scope, clause)

    def condition(self, expression: exp.Expr, scope: Scope, clause: str) -> exp.Expr:
        return resolved_condition(expression, scope, clause)

    def on(self, term: exp.Expr, left: Scope, right: Scope) -> exp.Expr:
        return resolved_on(term, left + right, left, right)
