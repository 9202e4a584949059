"""The expressions of a bounded query: translated as those of streams, with the subqueries in them.

A subquery stays where it stands, as the engine takes it; what hangs on the order of rows, or the clock, may be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.changelog.wording import counted
from dovetail.sql.bind.bounded.clocks import clocks
from dovetail.sql.bind.from_clause.from_item import FromItem
from dovetail.sql.bind.resolve import Within, condition, refuse_misplaced, translated, typed, typed_on
from dovetail.sql.bind.scope import Scope, Visible, place_of
from dovetail.sql.bind.subqueries.subqueries import HiddenColumn
from dovetail.sql.expressions.expression import KIND, Structure, column_named, structure
from dovetail.sql.functions.environment import Environment
from dovetail.sql.functions.interval_columns import INTERVAL, read
from dovetail.sql.functions.translate import Special, Translator
from dovetail.sql.functions.typed import Typed
from dovetail.sql.plan.conditions.unfit_constants import refuse_unfit_condition

_QUERY = "subquery#"
"""The call that stands for a subquery in an expression while the rest of it is translated."""
_AMONG = "among#"
"""The call that stands for IN over a subquery: its number, then the values that are looked for."""
_LOOKED_IN = "looked_in#"
"""The call that stands for a column of such a subquery: its number, and the place of the column."""

_Printed = tuple[exp.Select, Sequence[pa.DataType]]
"""A subquery as the engine takes it, and the types of its columns."""


@dataclass(frozen=True)
class BoundedExpressions:
    """Those of one SELECT. ``query`` binds a subquery within a scope: its tree, and the types of its columns."""

    query: Callable[[exp.Query, Scope], _Printed]
    known: dict[tuple[Structure, tuple[Visible, ...]], _Printed] = field(default_factory=dict)
    """What is written twice, in the select list and in GROUP BY, is one and the same."""

    @property
    def bounded(self) -> bool:
        return True

    def read(
        self, from_item: FromItem, expression: exp.Expr, clause: str
    ) -> tuple[FromItem, exp.Expr, list[HiddenColumn]]:
        return from_item, expression, []

    def looked_up(self, from_item: FromItem, expression: exp.Expr, clause: str) -> tuple[FromItem, exp.Expr]:
        return from_item, expression

    def value(self, expression: exp.Expr, scope: Scope, clause: str) -> exp.Expr:
        alone, within = self._apart(expression, scope, clause)
        tree = _typed_tree(typed(alone, scope, clause, within), expression, clause)
        refuse_unfit_condition(tree, _types(scope), scope.dialect.rules, clause)
        return tree

    def condition(self, expression: exp.Expr, scope: Scope, clause: str) -> exp.Expr:
        alone, within = self._apart(expression, scope, clause)
        tree = translated(condition(alone, scope, clause, within), expression, clause)
        refuse_unfit_condition(tree, _types(scope), scope.dialect.rules, clause)
        return tree

    def on(self, term: exp.Expr, left: Scope, right: Scope) -> exp.Expr:
        both = left + right
        alone, within = self._apart(term, both, "JOIN .. ON")
        tree = translated(typed_on(alone, both, left, right, within).tree, term, "JOIN .. ON")
        refuse_unfit_condition(tree, _types(both), both.dialect.rules, "JOIN .. ON")
        return tree

    def _apart(self, expression: exp.Expr, scope: Scope, clause: str) -> tuple[exp.Expr, Within]:
        """``expression`` with a call in the place of each of its subqueries; the translation of it gives that back."""
        alone = exp.Paren(this=expression.copy())
        found: list[tuple[exp.Expr, Sequence[pa.DataType]]] = []
        for compared in list(alone.find_all(exp.EQ, exp.NEQ)):
            _as_in(compared)
        for quantified in alone.find_all(exp.Any, exp.All):
            _refuse_query(quantified)
        for node in list(alone.walk(prune=lambda node: isinstance(node, exp.Query | exp.Exists))):
            if isinstance(node, exp.In) and node.args.get("query") is not None:
                value = node.this.unnest()
                values = value.expressions if isinstance(value, exp.Tuple) else [value]
                tree, kinds = self._printed(node.args["query"], scope)
                _expect_as_many(values, kinds, node)
                number = exp.Literal.number(len(found))
                found.append((tree, kinds))
                node.replace(exp.Anonymous(this=_AMONG, expressions=[number, *(one.copy() for one in values)]))
            elif isinstance(node, exp.Exists):
                found.append((exp.Exists(this=self._printed(node.this, scope)[0]), [pa.bool_()]))
                node.replace(_place(_QUERY, len(found) - 1))
            elif isinstance(node, exp.Query) and not (isinstance(node.parent, exp.In) and node.arg_key == "query"):
                tree, kinds = self._printed(node, scope)
                _expect_one(kinds, node)
                found.append((exp.Subquery(this=tree), kinds))
                node.replace(_place(_QUERY, len(found) - 1))
        refuse_misplaced(alone, clause)
        special: dict[str, Special] = {
            **clocks(),
            _QUERY: lambda translate, call: _given_back(translate, call, *found[_number(call)]),
            _AMONG: lambda translate, call: _among(translate, call, found[_number(call)][0]),
            _LOOKED_IN: lambda translate, call: _looked_in(translate, call, *found[_number(call)]),
        }
        return alone.this, Within(special, bounded=True)

    def _printed(self, written: exp.Expr, scope: Scope) -> _Printed:
        query = written.unnest()
        assert isinstance(query, exp.Query)
        place = structure(query), scope.columns
        if place not in self.known:
            self.known[place] = self.query(query, scope)
        tree, kinds = self.known[place]
        return tree.copy(), kinds


def _typed_tree(value: Typed, written: exp.Expr, clause: str) -> exp.Expr:
    """The tree, with the type that is known of it: NULL has none, which the engine would not say."""
    tree = translated(value.tree.copy(), written, clause)
    tree.meta[KIND] = value.type
    return tree


def _place(name: str, number: int) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[exp.Literal.number(number)])


def _number(call: exp.Expr) -> int:
    return int(str(call.expressions[0].this))


def _given_back(translate: Translator, call: exp.Expr, tree: exp.Expr, kinds: Sequence[pa.DataType]) -> Typed:
    translate.note_read(call)
    return _seen(translate, tree, kinds[0])


def _seen(translate: Translator, tree: exp.Expr, kind: pa.DataType) -> Typed:
    """A value that a subquery holds, as functions see it."""
    if kind == INTERVAL:
        return translate.known(read(_known(translate, tree, pa.string()).tree), INTERVAL)
    return _known(translate, tree, kind)


def _known(translate: Translator, tree: exp.Expr, kind: pa.DataType) -> Typed:
    tree = tree.copy()
    tree.meta[KIND] = kind
    return translate.environment.known(tree, kind)


def _among(translate: Translator, call: exp.Expr, query: exp.Expr) -> Typed:
    """``(x, y) IN (q)``, each value and its column as ``=`` compares them."""
    number, *values = call.expressions
    translate.note_read(number)
    pairs = [_compared(translate, value, number, place) for place, value in enumerate(values)]
    trees = [tree for tree, _ in pairs]
    value = trees[0] if len(trees) == 1 else exp.Tuple(expressions=trees)
    assert isinstance(query, exp.Select)
    columns = exp.select(*(column for _, column in pairs)).from_(query.copy().subquery("looked_in"))
    return _known(translate, exp.In(this=value, query=exp.Subquery(this=columns)), pa.bool_())


def _compared(translate: Translator, value: exp.Expr, number: exp.Expr, place: int) -> tuple[exp.Expr, exp.Expr]:
    """Both sides of ``value = column``, in one type. Raises SqlError where they are never equal."""
    column = exp.Anonymous(this=_LOOKED_IN, expressions=[number.copy(), exp.Literal.number(place)])
    equality = translate(exp.EQ(this=value, expression=column)).tree.unnest()
    assert isinstance(equality, exp.EQ)
    return equality.this, equality.expression


def _looked_in(translate: Translator, call: exp.Expr, query: exp.Expr, kinds: Sequence[pa.DataType]) -> Typed:
    for argument in call.expressions:
        translate.note_read(argument)
    place = int(str(call.expressions[1].this))
    return _seen(translate, column_named(query.expressions[place].alias), kinds[place])


def _expect_one(kinds: Sequence[pa.DataType], node: exp.Expr) -> None:
    if len(kinds) != 1:
        raise SqlError(
            f"a subquery that stands for a value has one column, not {len(kinds)}",
            where=place_of(node, "a subquery"),
            fix="select the one that is meant: (SELECT max(x) FROM r)",
        )


def _expect_as_many(values: Sequence[exp.Expr], kinds: Sequence[pa.DataType], node: exp.Expr) -> None:
    if len(values) != len(kinds):
        raise SqlError(
            f"IN compares {counted(len(values), 'value')} with {counted(len(kinds), 'column')} of the subquery",
            where=place_of(node, "a subquery"),
            fix="select as many columns as there are values: (a, b) IN (SELECT x, y FROM r), or one: SELECT x",
        )


def _types(scope: Scope) -> Callable[[exp.Expr], pa.DataType | None]:
    """Of what stands in a resolved condition; of what reads the query around it nothing is known here."""
    types = {column.internal: column.type for column in scope.columns}
    environment = Environment(types, "", scope.dialect.rules)

    def type_of(tree: exp.Expr) -> pa.DataType | None:
        known = all(column.name in types for column in tree.find_all(exp.Column))
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
