"""Subqueries in conditions and in the select list: each becomes an Apply, of which the rule ``unnest`` makes a join.

    EXISTS (q)       SEMI
    NOT EXISTS (q)   ANTI
    x IN (q)         SEMI on x = y, with y the column of q; (a, b) IN (q) on both
    x NOT IN (q)     ANTI on x = y; where y can be NULL, also ANTI with its rows that are; where x can be NULL, also
                     ANTI with all of its rows, for the left rows that are

The last line is SQL's rule of three values: x is not among rows only if it is known to be unequal to each. So a NULL
among them lets no row through, and a NULL on the left passes only where there are none.

A subquery that stands for a value has one column and one row, that of an aggregate without groups: INNER, or LEFT where
HAVING can leave the row out. The value is a hidden column of the rows then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
from sqlglot import exp

from changelog.errors import InternalError, SqlError, Unsupported
from joins.dataflow.ports import JoinKind
from sql.bind.from_clause.from_item import FromItem
from sql.bind.resolve import resolved
from sql.bind.scope import HIDDEN_TABLE, Scope, Visible, place_of
from sql.expressions.expression import Expr
from sql.expressions.predicates import conjuncts, split
from sql.plan.joins import Apply
from sql.plan.maps import filtered
from sql.plan.nodes import Aggregate, Join, Map, Node, column_of
from sql.plan.properties import one_row, walk
from sql.plan.unique_keys import never_null

_ASKED = f"{HIDDEN_TABLE}in"
"""What the columns of a subquery are called while the condition on them is looked up."""


@dataclass(frozen=True)
class SubqueryRows:
    """A bound subquery: its rows, and its output columns, which are columns of them."""

    node: Node
    columns: tuple[str, ...]


@dataclass(frozen=True)
class SubqueryValue:
    """A subquery that stands for a value, which is the one column of ``rows``."""

    rows: SubqueryRows
    place: str

    def joined(self, node: Node) -> Node:
        """``node`` with the value beside each row; NULL where the subquery has no row."""
        kind = JoinKind.INNER if _always_one(self.rows.node) else JoinKind.LEFT
        return Join(kind, Apply(single=True), node, self.rows.node, place=self.place)


def joined_with(node: Node, values: Sequence[SubqueryValue]) -> Node:
    """``node`` with all of ``values`` beside each row."""
    return reduce(lambda rows, value: value.joined(rows), values, node)


def _always_one(node: Node) -> bool:
    """Whether there always is a row: an aggregate without groups has one even of no rows."""
    if isinstance(node, Map):
        return node.where is None and _always_one(node.input)
    return isinstance(node, Aggregate) and not node.by and not _reads_around(node)


def _reads_around(node: Node) -> bool:
    """Whether something below reads columns that are not there: those of the query around."""
    return any(
        not set(expr.columns) <= set(below.input.schema.names)
        for below in walk(node)
        if isinstance(below, Map)
        for expr in (*(expr for _, expr in below.columns), *split(below.where))
    )


@dataclass(frozen=True)
class Existence:
    """A term that asks a subquery whether it has a row.

    values  what is looked for among the rows of ``query``; none of EXISTS
    """

    query: exp.Expr
    values: tuple[exp.Expr, ...]
    negated: bool
    written: exp.Expr

    @staticmethod
    def of(term: exp.Expr) -> Existence | None:
        """``term``, one of those that AND joins, as such; None for any other."""
        inner, negated = term.unnest(), False
        while isinstance(inner, exp.Not):
            inner, negated = inner.this.unnest(), not negated
        if isinstance(inner, exp.Exists):
            return Existence(inner.this, (), negated, inner)
        if isinstance(inner, exp.In) and inner.args.get("query") is not None:
            return Existence(inner.args["query"], _values(inner.this), negated, inner)
        quantified = inner.expression if isinstance(inner, exp.EQ | exp.NEQ) else None
        # x = ANY (q) is x IN (q), and x <> ALL (q) is x NOT IN (q).
        wanted = exp.Any if isinstance(inner, exp.EQ) else exp.All
        if isinstance(quantified, wanted) and isinstance(quantified.this.unnest(), exp.Query):
            return Existence(quantified.this, _values(inner.this), negated != isinstance(inner, exp.NEQ), inner)
        return None


def _asks_existence(node: exp.Expr) -> bool:
    return isinstance(node, exp.Exists | exp.Any | exp.All) or (
        isinstance(node, exp.In) and node.args.get("query") is not None
    )


def _values(written: exp.Expr) -> tuple[exp.Expr, ...]:
    return tuple(written.expressions) if isinstance(written.unnest(), exp.Tuple) else (written,)


@dataclass(frozen=True)
class Subqueries:
    """``rows`` binds a query within the scope of those around it, each time under names of its own."""

    rows: Callable[[exp.Query, Scope], SubqueryRows]

    def tested(self, from_item: FromItem, asked: Existence) -> FromItem:
        """``from_item`` with the rows alone for which the term holds."""
        if not asked.values:
            return self._applied(from_item, asked, self._rows(from_item, asked))
        rows = self._rows(from_item, asked)
        if len(rows.columns) != len(asked.values):
            raise SqlError(
                f"IN compares {len(asked.values)} with {len(rows.columns)} columns of the subquery",
                where=place_of(asked.written, "WHERE"),
                fix="select as many columns as there are values: (a, b) IN (SELECT x, y FROM r), or one: SELECT x",
            )
        made = self._applied(from_item, asked, rows, _equal(from_item, asked, rows))
        return self._unknown(made, asked, rows) if asked.negated else made

    def values(self, scope: Scope, expression: exp.Expr, clause: str) -> tuple[Scope, exp.Expr, list[SubqueryValue]]:
        """``expression`` with the subqueries in it, each of which stands for a value, as columns of the new scope."""
        alone, found = exp.Paren(this=expression.copy()), []
        for node in list(alone.walk(prune=lambda node: isinstance(node, exp.Query) or _asks_existence(node))):
            if not isinstance(node, exp.Query):
                continue
            value = self._value(scope, node, clause)
            found.append(value)
            internal = value.rows.columns[0]
            table = f"{HIDDEN_TABLE}{internal}"
            kind = value.rows.node.schema.field(internal).type
            column = Visible(table, "value", internal, kind, starred=False, bare=False)
            scope = replace(scope, columns=(*scope.columns, column))
            node.replace(exp.column("value", table=table))
        return scope, alone.this, found

    def _value(self, scope: Scope, node: exp.Query, clause: str) -> SubqueryValue:
        query, place = node.unnest(), place_of(node, clause)
        rows = self.rows(query if isinstance(query, exp.Query) else node, scope)
        if len(rows.columns) != 1:
            raise SqlError(
                f"a subquery that stands for a value has one column, not {len(rows.columns)}",
                where=place,
                fix="select the one that is meant: (SELECT max(x) FROM r)",
            )
        if not one_row(rows.node):
            raise Unsupported(
                "a subquery that stands for a value has one row, and this one can have several",
                where=place,
                fix="aggregate, without groups: (SELECT max(x) FROM r WHERE r.k = l.k); or join: JOIN r ON l.k = r.k",
            )
        return SubqueryValue(rows, place)

    def _unknown(self, from_item: FromItem, asked: Existence, rows: SubqueryRows) -> FromItem:
        """NOT IN: without the rows for which a comparison is neither true nor false."""
        fields = from_item.node.schema
        trees = [resolved(value, from_item.scope, "WHERE") for value in asked.values]
        given = [Expr.over(tree, from_item.scope.seen_with(fields)) for tree in trees]
        known = [value.plain is not None and value.plain in never_null(from_item.node) for value in given]
        sure = [column in never_null(rows.node) for column in rows.columns]
        if len(given) > 1 and not all(known + sure):
            raise Unsupported(
                "NOT IN of several columns that can be NULL is not supported: a row of which one is NULL is neither in "
                "nor out",
                where=place_of(asked.written, "WHERE"),
                fix="leave NULL out on both sides: a IS NOT NULL AND (a, b) NOT IN (SELECT x, y FROM r WHERE x IS NOT "
                "NULL AND ..), or ask NOT EXISTS (SELECT 1 FROM r WHERE x = a AND y = b)",
            )
        if not all(sure):
            nulls = self._rows(from_item, asked)
            absent = Expr.condition(_is_null(column_of(nulls.node, nulls.columns[0])))
            from_item = self._applied(from_item, asked, replace(nulls, node=filtered(nulls.node, [absent])))
        if not all(known):
            from_item = self._applied(
                from_item, asked, self._rows(from_item, asked), [Expr.condition(_is_null(given[0]))]
            )
        return from_item

    def _rows(self, from_item: FromItem, asked: Existence) -> SubqueryRows:
        query = asked.query.unnest()
        if not isinstance(query, exp.Query):
            raise InternalError(f"{type(query).__name__} is no query")
        return self.rows(query, from_item.scope)

    def _applied(self, from_item: FromItem, asked: Existence, rows: SubqueryRows, on: Sequence[Expr] = ()) -> FromItem:
        kind = JoinKind.ANTI if asked.negated else JoinKind.SEMI
        place = place_of(asked.written, "WHERE")
        return replace(from_item, node=Join(kind, Apply(), from_item.node, rows.node, tuple(on), place=place))


def _equal(from_item: FromItem, asked: Existence, rows: SubqueryRows) -> list[Expr]:
    """Each value equal to its column."""
    kinds = rows.node.schema
    names = [str(number) for number in range(len(rows.columns))]
    columns = [
        Visible(_ASKED, name, internal, kinds.field(internal).type, starred=False, bare=False)
        for name, internal in zip(names, rows.columns, strict=True)
    ]
    scope = from_item.scope + Scope(tuple(columns))
    pairs = zip(asked.values, names, strict=True)
    terms = [exp.EQ(this=value.copy(), expression=exp.column(name, table=_ASKED)) for value, name in pairs]
    known = pa.schema([*from_item.scope.seen_with(from_item.node.schema), *kinds])
    found = [conjunct for term in terms for conjunct in conjuncts(resolved(term, scope, "WHERE"))]
    return [Expr.over(tree, known, place_of(asked.written, "WHERE")).held_as(pa.bool_()) for tree in found]


def _is_null(value: Expr) -> exp.Expr:
    return exp.Is(this=value.tree.copy(), expression=exp.null())
