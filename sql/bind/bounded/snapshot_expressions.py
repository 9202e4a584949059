"""The expressions of a bounded query: translated as those of streams, with the subqueries in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import Unsupported
from dovetail.sql.bind.bounded.clocks import clocks
from dovetail.sql.bind.bounded.snapshot_items import Columns
from dovetail.sql.bind.bounded.snapshot_names import SnapshotNames
from dovetail.sql.bind.from_clause.join_method import terms_of
from dovetail.sql.bind.resolve import Within, condition, typed, typed_on
from dovetail.sql.bind.scope import Scope, place_of
from dovetail.sql.functions.environment import KIND, Environment
from dovetail.sql.functions.translate import Translator
from dovetail.sql.functions.typed import Typed
from dovetail.sql.plan.conditions.unfit_constants import refuse_unfit_condition

_QUERY = "subquery#"
"""The call that stands for a subquery in an expression while the rest of it is translated."""
_AMONG = "among#"
"""The call that stands for IN over a subquery: its number, then the values that are looked for."""


@dataclass
class SnapshotExpressions:
    """Those of one SELECT. ``query`` rewrites a subquery within a scope, and tells its columns."""

    names: SnapshotNames
    query: Callable[[exp.Expr, Scope], Columns]
    outer: Scope | None
    inner: list[tuple[exp.Expr, pa.DataType]] = field(default_factory=list)
    """The subqueries, each with the type of its value."""

    def typed(self, expression: exp.Expr, scope: Scope, clause: str) -> Typed:
        alone = exp.Paren(this=expression.copy())
        within = self._within(alone, scope)
        return typed(alone.this, self._outside(scope), clause, within)

    def tree(self, expression: exp.Expr, scope: Scope, clause: str) -> exp.Expr:
        return self.names.written(self.typed(expression, scope, clause).tree)

    def condition(self, expression: exp.Expr, scope: Scope, clause: str) -> exp.Expr:
        alone = exp.Paren(this=expression.copy())
        within = self._within(alone, scope)
        tree = condition(alone.this, self._outside(scope), clause, within)
        refuse_unfit_condition(tree, _types(scope), scope.dialect.rules, clause)
        return self.names.written(tree)

    def on(self, join_on: exp.Expr, left: Scope, right: Scope) -> exp.Expr:
        """The condition of a join, modifiers apart."""
        conditions, _ = terms_of(join_on)
        alone, both = exp.Paren(this=exp.and_(*conditions)), left + right
        within = self._within(alone, both)
        tree = typed_on(alone.this, self._outside(both), left, right, within).tree
        refuse_unfit_condition(tree, _types(both), both.dialect.rules, "JOIN .. ON")
        return self.names.written(tree)

    def _outside(self, scope: Scope) -> Scope:
        return replace(scope, outer=self.outer)

    def _within(self, expression: exp.Expr, scope: Scope) -> Within:
        """Takes the subqueries out of an expression, in place; the call that stands for one gives it back."""
        for compared in list(expression.find_all(exp.EQ, exp.NEQ)):
            _as_in(compared)
        for quantified in expression.find_all(exp.Any, exp.All):
            _refuse_query(quantified)
        for node in list(expression.walk(prune=lambda node: isinstance(node, exp.Query | exp.Exists))):
            if isinstance(node, exp.In) and node.args.get("query") is not None:
                self._set_in_apart(node, scope)
            elif isinstance(node, exp.Exists):
                self._set_apart(node, node.this, scope, pa.bool_())
            elif isinstance(node, exp.Query) and not (isinstance(node.parent, exp.In) and node.arg_key == "query"):
                self._set_apart(node, node, scope, None)
        special = clocks()
        special[_AMONG] = self._among
        special[_QUERY] = self._given_back
        return Within(special, bounded=True)

    def _set_apart(self, node: exp.Expr, query: exp.Expr, scope: Scope, kind: pa.DataType | None) -> None:
        columns = self.query(query, self._outside(scope))
        stands = exp.Anonymous(this=_QUERY, expressions=[exp.Literal.number(len(self.inner))])
        node.replace(stands)
        # A key of GROUP BY comes without its brackets.
        bare = isinstance(node, exp.Query) and not isinstance(node, exp.Subquery)
        self.inner.append((exp.Subquery(this=node) if bare else node, kind or columns[0][1]))

    def _set_in_apart(self, node: exp.In, scope: Scope) -> None:
        query = node.args["query"]
        self.query(query, self._outside(scope))
        value = node.this.unnest()
        values = value.expressions if isinstance(value, exp.Tuple) else [value]
        number = exp.Literal.number(len(self.inner))
        self.inner.append((query, pa.bool_()))
        stands = exp.Anonymous(this=_AMONG, expressions=[number, *(one.copy() for one in values)])
        node.replace(stands)

    def _among(self, translate: Translator, call: exp.Expr) -> Typed:
        number, *values = call.expressions
        query, kind = self.inner[int(str(number.this))]
        translate.note_read(number)
        trees = [translate(value).tree for value in values]
        value = trees[0] if len(trees) == 1 else exp.Tuple(expressions=trees)
        within = query if isinstance(query, exp.Subquery) else exp.Subquery(this=query)
        among = exp.In(this=value, query=within)
        among.meta[KIND] = kind
        return translate.environment.known(among, kind)

    def _given_back(self, translate: Translator, call: exp.Expr) -> Typed:
        translate.note_read(call)
        node, kind = self.inner[int(str(call.expressions[0].this))]
        node.meta[KIND] = kind
        return Typed(node, translate.environment.ask, kind)


def _types(scope: Scope) -> Callable[[exp.Expr], pa.DataType | None]:
    """Of what stands in a resolved condition; of what reads the query around it nothing is known here."""
    environment = Environment(scope.types, "", scope.dialect.rules)

    def type_of(tree: exp.Expr) -> pa.DataType | None:
        known = all(column.name in scope.types for column in tree.find_all(exp.Column))
        return environment.ask(tree) if known and not isinstance(tree, exp.Literal) else None

    return type_of


def _refuse_query(quantified: exp.Expr) -> None:
    if isinstance(quantified.this.unnest(), exp.Query):
        raise Unsupported(
            "ANY and ALL over a subquery are supported with = ANY and <> ALL",
            where=place_of(quantified, "a query over table(x)"),
            fix="compare with one value: x > (SELECT max(n) FROM table(r)); or x IN (SELECT n FROM table(r))",
        )


def _as_in(node: exp.Expr) -> None:
    """``x = ANY (q)`` as ``x IN (q)``, in place, and ``x <> ALL (q)`` as its opposite."""
    side = node.args["expression"]
    wanted = exp.Any if isinstance(node, exp.EQ) else exp.All
    if not isinstance(side, wanted) or not isinstance(side.this.unnest(), exp.Query):
        return
    among = exp.In(this=node.this.copy(), query=exp.Subquery(this=side.this.unnest().copy()))
    node.replace(among if isinstance(node, exp.EQ) else exp.Not(this=among))
