"""The clauses of a SELECT over a bound FROM: WHERE, the select list, GROUP BY with HAVING, QUALIFY, DISTINCT."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import Unsupported
from dovetail.sql.bind.aggregates import (
    Groups,
    distinct,
    grouping_sets,
    having_terms,
    is_grouped,
    refuse_lookups_of_aggregates,
    selected_item,
    without_aliases,
)
from dovetail.sql.bind.bound import Bound
from dovetail.sql.bind.clock_conditions import of_rows
from dovetail.sql.bind.expressions import QueryExpressions, StreamExpressions
from dovetail.sql.bind.from_clause.from_item import FromItem
from dovetail.sql.bind.groups.session_keys import refuse_ungrouped, with_keys
from dovetail.sql.bind.ordered import ALL_ROWS, OrderTerm, in_order, order_terms, rows_wanted
from dovetail.sql.bind.partitions.ties import Shown
from dovetail.sql.bind.partitions.window_functions import WindowFunctions
from dovetail.sql.bind.projection import expect_columns, is_delta, selected
from dovetail.sql.bind.scope import Scope, place_of
from dovetail.sql.bind.subqueries.subqueries import Existence, HiddenColumn, joined_with, read_around
from dovetail.sql.bind.written.rows_before import ordered_by_arrival
from dovetail.sql.bind.written.substreams import SUBSTREAMS
from dovetail.sql.expressions.expression import Expr, Structure, structure
from dovetail.sql.expressions.predicates import conjunction, conjuncts
from dovetail.sql.functions.aggregate_calls import aggregates_in
from dovetail.sql.functions.translate import Dialect
from dovetail.sql.plan.column_names import output_names
from dovetail.sql.plan.maps import identity
from dovetail.sql.plan.nodes import Map, Node, Static
from dovetail.sql.plan.top_rows import first_rows

ValuedKeys = Mapping[Structure, exp.Expr]
"""The keys of GROUP BY in which there are subqueries -> the same over their values."""


@dataclass(frozen=True)
class SelectClauses:
    """``named`` makes an alias unique."""

    select: exp.Select
    expressions: QueryExpressions
    dialect: Dialect
    named: Callable[[str], str]

    def over(self, from_item: FromItem) -> Bound:
        """The rows and columns of the SELECT, of which ``from_item`` is FROM with its joins."""
        for clause in (self.select.args.get("prewhere"), self.select.args.get("where")):
            if clause is not None:
                condition = clause.this if self.expressions.bounded else of_rows(clause.this)
                from_item = self.where(from_item, without_aliases(condition, self.select, from_item.scope))
        self._check_substreams(from_item)
        ordered_by_arrival(self.select, from_item.scope, grouped=is_grouped(self.select))
        if not self.expressions.bounded:
            self._check_order(from_item)
        for window in self.select.args.get("windows") or ():
            self._check_window(window, from_item.scope)
        return self._grouped(from_item) if is_grouped(self.select) else self._selected(from_item)

    def _check_substreams(self, from_item: FromItem) -> None:
        """PARTITION BY says nothing of rows that are not grouped, but its keys are of columns that there are."""
        keys = self.select.args.get(SUBSTREAMS)
        for key in () if keys is None else keys.expressions:
            self.expressions.value(
                selected_item(key, self.select, from_item.scope, "PARTITION BY"), from_item.scope, "PARTITION BY"
            )

    def _check_order(self, from_item: FromItem) -> None:
        """ORDER BY says nothing of a set of rows, but names columns that there are."""
        order = self.select.args.get("order")
        for ordered in () if order is None else order.expressions:
            key = selected_item(ordered.this, self.select, from_item.scope, "ORDER BY")
            if key.find(exp.Query) is None:
                self.expressions.value(key, from_item.scope, "ORDER BY")

    def _check_window(self, written: exp.Window, scope: Scope) -> None:
        """One that nothing names has columns that there are."""
        window = written.copy()
        window.set("this", exp.Count(this=exp.Star()))
        window.set("over", "OVER")
        self.expressions.value(window, scope, "SELECT")

    def where(self, from_item: FromItem, condition: exp.Expr) -> FromItem:
        """Conditions on the rows themselves first, so that fewer are asked for in subqueries."""
        if not isinstance(self.expressions, StreamExpressions):
            return self._filtered(from_item, condition)
        terms = conjuncts(condition)
        tested = [(term, _existence_of(term)) for term in terms]
        plain = [term for term, existence in tested if existence is None]
        if plain:
            from_item = self._filtered(from_item, exp.and_(*(term.copy() for term in plain), copy=False))
        for _, existence in tested:
            if existence is not None:
                from_item = self.expressions.subqueries.tested(from_item, existence)
        return from_item

    def _filtered(self, from_item: FromItem, condition: exp.Expr) -> FromItem:
        from_item, condition = self._valued(from_item, condition, "WHERE")
        from_item, condition = self.expressions.looked_up(from_item, condition, "WHERE")
        trees = [self.expressions.condition(term, from_item.scope, "WHERE") for term in conjuncts(condition)]
        place, schema = place_of(condition, "WHERE"), from_item.scope.seen_with(from_item.node.schema)
        terms = [Expr.over(tree, schema, place).held_as(pa.bool_()) for tree in trees]
        if isinstance(from_item.node, Static) and from_item.scope.outer is None:
            raise Unsupported(
                "a filter of a view over table(x) alone is not supported",
                where="in WHERE",
                fix="filter the table itself, JOIN (SELECT .. FROM table(x) WHERE ..), or filter above the join",
            )
        return replace(from_item, node=Map(from_item.node, identity(from_item.node), conjunction(terms)))

    def _valued(self, from_item: FromItem, expression: exp.Expr, clause: str) -> tuple[FromItem, exp.Expr]:
        """``expression`` over rows that have the values of the subqueries in it."""
        from_item, over_columns, values = self.expressions.read(from_item, expression, clause)
        return replace(from_item, node=joined_with(from_item.node, values)), over_columns

    def _selected(self, from_item: FromItem) -> Bound:
        refuse_ungrouped(from_item.node)
        from_item, selected = self._projected(from_item, [], {})
        node = joined_with(from_item.node, selected.values)
        order = self._ordered(from_item.scope)
        return self._over_partitions(node, selected, self._qualified(from_item.scope), from_item.scope, order)

    def _qualified(self, scope: Scope) -> list[exp.Expr]:
        """The condition of QUALIFY, in terms."""
        clause = self.select.args.get("qualify")
        if clause is None:
            return []
        condition = without_aliases(clause.this, self.select, scope)
        return [self.expressions.condition(term, scope, "QUALIFY") for term in conjuncts(condition)]

    def _ordered(self, scope: Scope) -> list[OrderTerm]:
        """The terms of ORDER BY of a bounded query, whose rows have an order."""
        order = self.select.args.get("order")
        if order is None or not self.expressions.bounded:
            return []
        distinct = self.select.args.get("distinct") is not None
        return [
            made
            for term in order.expressions
            for made in order_terms(term, self.select, scope, self.expressions.value, distinct=distinct)
        ]

    def _over_partitions(
        self,
        node: Node,
        selected: _Selected,
        qualified: Sequence[exp.Expr],
        scope: Scope,
        order: Sequence[OrderTerm] = (),
    ) -> Bound:
        """The rows with their window functions, those alone that QUALIFY lets through."""
        if self.expressions.bounded:
            return self._in_order(node, selected, qualified, scope, order)
        functions = WindowFunctions(node, scope.seen_with(node.schema))
        clause = self.select.args.get("qualify")
        place = "" if clause is None else place_of(clause, "QUALIFY")
        shown = Shown.of([*selected.trees, *qualified])
        terms = [functions.over(shown.distinguished(term), place) for term in qualified]
        selected.trees = [
            functions.over(shown.distinguished(tree), written)
            for tree, written in zip(selected.trees, selected.places, strict=True)
        ]
        node = functions.node()
        if terms:
            conditions = [Expr.over(term, node.schema, place).held_as(pa.bool_()) for term in terms]
            passed = Map(node, identity(node), conjunction(conditions))
            node = first_rows(passed) or passed
        return self._distinct(selected.bound(node, scope.seen_with(node.schema)))

    def _in_order(
        self,
        node: Node,
        selected: _Selected,
        qualified: Sequence[exp.Expr],
        scope: Scope,
        order: Sequence[OrderTerm],
    ) -> Bound:
        """The rows of a bounded query: window functions are parts of its expressions, and it has a last row."""
        shown = Shown.of([*selected.trees, *qualified])
        written = list(selected.trees)
        selected.trees = [shown.distinguished(tree) for tree in written]
        known = scope.seen_with(node.schema)
        place = place_of(self.select.args["qualify"], "QUALIFY") if qualified else ""
        conditions = [Expr.over(shown.distinguished(term), known, place).held_as(pa.bool_()) for term in qualified]
        bound, wanted = selected.bound(node, known), rows_wanted(self.select)
        if self.select.args.get("distinct") is not None:
            bound = self._distinct(in_order(bound, [], ALL_ROWS, self.named, known, conditions))
            return in_order(bound, [term.of_output(written) for term in order], wanted, self.named, known)
        ties = shown.ties([term.written for term in order]) if order and wanted.limit is not None else ()
        return in_order(bound, [*order, *map(OrderTerm.of, ties)], wanted, self.named, known, conditions)

    def _projected(
        self, from_item: FromItem, values: Sequence[HiddenColumn], keys: ValuedKeys
    ) -> tuple[FromItem, _Selected]:
        """The select list, with the lookups and the values of subqueries that it asks for, besides ``values``."""
        select = self.select
        found = _Selected(values=list(values))
        for projection in select.expressions:
            if is_delta(projection) and not from_item.scope.has(projection.name):
                found.marked = True
                continue
            for name, table, expression in selected(projection, select, from_item.scope):
                spelled = _with_keys(expression, keys)
                from_item, valued = self._with_values(from_item, spelled, "SELECT", found.values)
                from_item, over_columns = self.expressions.looked_up(from_item, valued, "SELECT")
                found.names.append((name, table))
                found.trees.append(self.expressions.value(over_columns, from_item.scope, "SELECT"))
                found.places.append(place_of(projection, "SELECT"))
        if not found.marked:
            expect_columns(found.names, select)
        return from_item, found

    def _grouped(self, from_item: FromItem) -> Bound:
        """A select list over groups: GROUP BY, or aggregates over all rows."""
        select = self.select
        refuse_lookups_of_aggregates(select)
        keys, terms = [], []
        values: list[HiddenColumn] = []
        valued_keys: dict[Structure, exp.Expr] = {}
        grouped = grouping_sets(select, from_item.scope)
        for key in grouped.keys:
            from_item, valued = self._valued(from_item, key, "GROUP BY")
            if key.find(exp.Query) is not None and not self.expressions.bounded:
                valued_keys[structure(key.unnest())] = valued
            from_item, over_columns = self.expressions.looked_up(from_item, valued, "GROUP BY")
            keys.append((self.expressions.value(over_columns, from_item.scope, "GROUP BY"), place_of(key, "GROUP BY")))
        for term in having_terms(select, from_item.scope, clock=not self.expressions.bounded):
            from_item, valued = self._with_values(from_item, _with_keys(term, valued_keys), "HAVING", values)
            from_item, over_columns = self.expressions.looked_up(from_item, valued, "HAVING")
            having_tree = self.expressions.condition(over_columns, from_item.scope, "HAVING")
            terms.append((having_tree, place_of(term, "HAVING")))
        from_item, selected = self._projected(from_item, values, valued_keys)
        known = from_item.scope.seen_with(from_item.node.schema)
        exprs = [Expr.over(tree, known, place) for tree, place in keys]
        rows, bounded = with_keys(from_item.node, exprs), self.expressions.bounded
        groups = Groups(rows, self.dialect.rules, from_item.scope.around, bounded)
        groups.add_sets(exprs, grouped.sets)
        selected.trees = [groups.over(tree, place) for tree, place in zip(selected.trees, selected.places, strict=True)]
        qualified = [groups.over(tree, place_of(select, "QUALIFY")) for tree in self._qualified(from_item.scope)]
        having = [groups.over(tree, place) for tree, place in terms]
        order = [term.over(groups) for term in self._ordered(from_item.scope)]
        for column in selected.values:
            groups.refuse_ungrouped(read_around(column.rows.node), column.place)
        beside = [column.over(groups.over) for column in selected.values]
        node = joined_with(groups.node(place_of(select, "SELECT")), beside)
        if having:
            place = place_of(select.args["having"], "HAVING")
            known = from_item.scope.seen_with(node.schema)
            conditions = [Expr.over(tree, known, place).held_as(pa.bool_()) for tree in having]
            node = Map(node, identity(node), conjunction(conditions))
        return self._over_partitions(node, selected, qualified, from_item.scope, order)

    def _with_values(
        self, from_item: FromItem, expression: exp.Expr, clause: str, values: list[HiddenColumn]
    ) -> tuple[FromItem, exp.Expr]:
        """``expression`` over rows that will have ``values``, to which those of its subqueries are added. Those in an
        aggregate are of the rows below the groups.
        """
        alone = exp.Paren(this=expression.copy())
        for call in list(aggregates_in(alone)):
            if call.find(exp.Query) is not None:
                from_item, valued = self._valued(from_item, call, clause)
                call.replace(valued)
        from_item, over_columns, found = self.expressions.read(from_item, alone.this, clause)
        values += found
        return from_item, over_columns

    def _distinct(self, bound: Bound) -> Bound:
        if self.select.args.get("distinct") is None:
            return bound
        node, columns = distinct(
            bound.node, bound.columns, place_of(self.select, "SELECT"), self.dialect.rules, self.expressions.bounded
        )
        return replace(bound, node=node, columns=columns)


def _existence_of(term: exp.Expr) -> Existence | None:
    """What a term of WHERE asks a subquery, if it is that alone: a value that is looked for is of the row itself."""
    existence = Existence.of(term)
    plain = existence is not None and all(value.find(exp.Query) is None for value in existence.values)
    return existence if plain else None


def _with_keys(expression: exp.Expr, keys: ValuedKeys) -> exp.Expr:
    """``expression`` with what it says of the keys of GROUP BY that are made of subqueries in their place."""

    def replaced(node: exp.Expr) -> exp.Expr:
        valued = keys.get(structure(node.unnest()))
        return node if valued is None else valued.copy()

    return expression.copy().transform(replaced) if keys else expression


@dataclass
class _Selected:
    """A select list: names with their tables, expressions, and where they are written."""

    names: list[tuple[str, str]] = field(default_factory=list)
    trees: list[exp.Expr] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    marked: bool = False
    values: list[HiddenColumn] = field(default_factory=list)
    """Those of subqueries, which the rows are yet to be joined with."""

    def bound(self, node: Node, schema: pa.Schema) -> Bound:
        """``schema``: all columns that the expressions may read."""
        exprs = [Expr.over(tree, schema, place) for tree, place in zip(self.trees, self.places, strict=True)]
        return Bound(node, tuple(zip(output_names(self.names), exprs, strict=True)), self.marked)
