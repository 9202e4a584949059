"""Subqueries in conditions and in the select list: each becomes an Apply, of which the rule ``unnest`` makes a join.

Of a term of WHERE:

    EXISTS (q)       SEMI
    NOT EXISTS (q)   ANTI
    x IN (q)         SEMI on x = y, with y the column of q; (a, b) IN (q) on both
    x NOT IN (q)     ANTI on x = y; where y can be NULL, also ANTI with its rows that are; where x can be NULL, also
                     ANTI with all of its rows, for the left rows that are

The last line is SQL's rule of three values: x is not among rows only if it is known to be unequal to each. So a NULL
among them lets no row through, and a NULL on the left passes only where there are none.

Elsewhere, under OR, in CASE, in the select list or HAVING, the answer is a hidden column of the rows: MARK adds it. It
is NULL for IN where neither IN nor NOT IN would keep the row.

A subquery that stands for a value has one column and one row, that of an aggregate without groups: INNER, or LEFT where
HAVING can leave the row out; or one at most, by a primary key: LEFT. The value is a hidden column of the rows then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
from sqlglot import exp

from dovetail.changelog.errors import InternalError, SqlError, Unsupported
from dovetail.changelog.wording import counted
from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.bind.from_clause.from_item import FromItem
from dovetail.sql.bind.resolve import resolved
from dovetail.sql.bind.scope import HIDDEN_TABLE, Scope, Visible, place_of
from dovetail.sql.expressions.comparison import comparison
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.expressions.predicates import conjuncts, split
from dovetail.sql.plan.joins import Apply
from dovetail.sql.plan.maps import filtered
from dovetail.sql.plan.nodes import Aggregate, Join, Map, Node
from dovetail.sql.plan.properties import walk

_IN_COLUMNS = f"{HIDDEN_TABLE}in"
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

    def over(self, made: Callable[[exp.Expr, str], exp.Expr]) -> SubqueryValue:
        """A value is compared with nothing but in its subquery."""
        return self


@dataclass(frozen=True)
class SubqueryMark:
    """Whether a row of a subquery fulfils ``on``, as the column ``mark``.

    on      trees over the row and the columns of ``rows``
    around  the columns around the query
    """

    rows: SubqueryRows
    on: tuple[exp.Expr, ...]
    around: tuple[pa.Field, ...]
    mark: str
    place: str

    def joined(self, node: Node) -> Node:
        known = pa.schema([*node.schema, *self.around, *self.rows.node.schema])
        on = tuple(Expr.over(tree, known, self.place).held_as(pa.bool_()) for tree in self.on)
        return Join(JoinKind.MARK, Apply(), node, self.rows.node, on, place=self.place, mark=self.mark)

    def over(self, made: Callable[[exp.Expr, str], exp.Expr]) -> SubqueryMark:
        """Asked of rows that ``made`` expresses the columns by: groups."""
        return replace(self, on=tuple(made(tree, self.place) for tree in self.on))


HiddenColumn = SubqueryValue | SubqueryMark
"""What the answer of a subquery in an expression is."""


def joined_with(node: Node, columns: Sequence[HiddenColumn]) -> Node:
    """``node`` with all of ``columns`` beside each row."""
    return reduce(lambda rows, column: column.joined(rows), columns, node)


def _always_one(node: Node) -> bool:
    """Whether there always is a row: an aggregate without groups has one even of no rows."""
    if isinstance(node, Map):
        return node.where is None and _always_one(node.input)
    return isinstance(node, Aggregate) and not node.by and not read_around(node)


def read_around(node: Node) -> set[str]:
    """The columns that something below reads and that are not there: those of the query around."""
    found: set[str] = set()
    for below in walk(node):
        own = {name for input_ in below.inputs for name in input_.schema.names}
        exprs: Sequence[Expr] = ()
        if isinstance(below, Map):
            exprs = [*(expr for _, expr in below.columns), *split(below.where)]
        elif isinstance(below, Join):
            exprs = below.on
        found.update(name for expr in exprs for name in expr.columns if name not in own)
    return found


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
    return isinstance(node, exp.Exists | exp.In | exp.EQ | exp.NEQ) and Existence.of(node) is not None


def _has_rows_of_its_own(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query | exp.Any | exp.All) or _asks_existence(node)


def subqueries_in(expression: exp.Expr) -> Iterator[exp.Expr]:
    """The parts of an expression that subqueries answer: EXISTS, IN, values; not those within them."""
    for node in expression.walk(prune=_has_rows_of_its_own):
        if _asks_existence(node) or isinstance(node, exp.Query):
            yield node


def _values(written: exp.Expr) -> tuple[exp.Expr, ...]:
    return tuple(written.expressions) if isinstance(written.unnest(), exp.Tuple) else (written,)


@dataclass(frozen=True)
class _Tested:
    """Rows of a subquery that are looked for: those that fulfil ``on``."""

    rows: SubqueryRows
    on: tuple[exp.Expr, ...] = ()


@dataclass(frozen=True)
class Subqueries:
    """``rows`` binds a query within the scope of those around it, each time under names of its own; ``name`` gives a
    name that no column has.
    """

    rows: Callable[[exp.Query, Scope], SubqueryRows]
    name: Callable[[str], str]

    def tested(self, from_item: FromItem, existence: Existence) -> FromItem:
        """``from_item`` with the rows alone for which the term holds."""
        kind = JoinKind.ANTI if existence.negated else JoinKind.SEMI
        place = place_of(existence.written, "WHERE")
        found = self._looked_for(from_item.scope, existence, "WHERE")
        unknown = self._unknown(from_item, existence, found, "WHERE") if existence.negated else []
        node = from_item.node
        for tested in (found, *unknown):
            known = pa.schema([*from_item.scope.seen_with(node.schema), *tested.rows.node.schema])
            on = tuple(Expr.over(tree, known, place).held_as(pa.bool_()) for tree in tested.on)
            node = Join(kind, Apply(), node, tested.rows.node, on, place=place)
        return replace(from_item, node=node)

    def values(
        self, from_item: FromItem, expression: exp.Expr, clause: str
    ) -> tuple[FromItem, exp.Expr, list[HiddenColumn]]:
        """``expression`` with the subqueries in it as columns, which the new scope has and the rows do not have yet."""
        alone = exp.Paren(this=expression.copy())
        found: list[HiddenColumn] = []
        for node in list(subqueries_in(alone)):
            if _asks_existence(node):
                from_item, answer, marks = self._marked(from_item, node, clause)
                found += marks
            elif isinstance(node, exp.Query):
                value = self._value(from_item.scope, node, clause)
                internal = value.rows.columns[0]
                from_item, answer = _with_column(from_item, value.rows.node.column(internal))
                found.append(value)
            else:
                raise InternalError(f"{type(node).__name__} asks no subquery")
            node.replace(answer)
        return from_item, alone.this, found

    def _marked(
        self, from_item: FromItem, node: exp.Expr, clause: str
    ) -> tuple[FromItem, exp.Expr, list[HiddenColumn]]:
        """EXISTS or IN as an expression over marks."""
        existence = Existence.of(node)
        if existence is None:
            raise InternalError(f"{type(node).__name__} asks no subquery")
        marks: list[HiddenColumn] = []
        values = []
        for value in existence.values:
            from_item, over_columns, within = self.values(from_item, value, clause)
            marks += within
            values.append(over_columns)
        existence = replace(existence, values=tuple(values))
        found = self._looked_for(from_item.scope, existence, clause)
        unknown = [] if _null_is_false(node, clause) else self._unknown(from_item, existence, found, clause)
        place, around = place_of(existence.written, clause), tuple(from_item.scope.around)
        answers = []
        for tested in (found, *unknown):
            mark = self.name("mark")
            marks.append(SubqueryMark(tested.rows, tested.on, around, mark, place))
            from_item, column = _with_column(from_item, Expr.column(mark, pa.bool_()))
            answers.append(column)
        answer: exp.Expr = answers[0]
        if unknown:
            answer = exp.Case().when(answers[0], exp.true()).when(exp.or_(*answers[1:]), exp.null()).else_(exp.false())
        return from_item, exp.Paren(this=exp.not_(answer) if existence.negated else answer), marks

    def _value(self, scope: Scope, node: exp.Query, clause: str) -> SubqueryValue:
        query, place = node.unnest(), place_of(node, clause)
        rows = self.rows(query if isinstance(query, exp.Query) else node, scope)
        if len(rows.columns) != 1:
            raise SqlError(
                f"a subquery that stands for a value has one column, not {len(rows.columns)}",
                where=place,
                fix="select the one that is meant: (SELECT max(x) FROM r)",
            )
        if not (rows.node.single_row or _has_equal_key(rows.node, scope)):
            raise Unsupported(
                "a subquery that stands for a value has one row, and this one can have several",
                where=place,
                fix="aggregate, without groups: (SELECT max(x) FROM r WHERE r.k = l.k); or ask by the whole primary "
                "key; or join: JOIN r ON l.k = r.k",
            )
        return SubqueryValue(rows, place)

    def _looked_for(self, scope: Scope, existence: Existence, clause: str) -> _Tested:
        """The rows of which one answers yes."""
        rows = self._rows(scope, existence)
        if existence.values and len(rows.columns) != len(existence.values):
            raise SqlError(
                f"IN compares {counted(len(existence.values), 'value')} with "
                f"{counted(len(rows.columns), 'column')} of the subquery",
                where=place_of(existence.written, clause),
                fix="select as many columns as there are values: (a, b) IN (SELECT x, y FROM r), or one: SELECT x",
            )
        return _Tested(rows, _equal(scope, existence, rows, clause))

    def _unknown(self, from_item: FromItem, existence: Existence, found: _Tested, clause: str) -> list[_Tested]:
        """The rows of which one makes it unknown whether a value is among those that are not equal to it; none of
        EXISTS, which always knows.
        """
        if not existence.values:
            return []
        scope = from_item.scope
        trees = [resolved(value, scope, clause) for value in existence.values]
        given = from_item.node.not_null
        known = [isinstance(tree, exp.Column) and tree.name in given for tree in trees]
        sure = [column in found.rows.node.not_null for column in found.rows.columns]
        if len(trees) > 1 and not all(known + sure):
            raise Unsupported(
                "NOT IN of several columns that can be NULL is not supported: a row of which one is NULL is neither in "
                "nor out",
                where=place_of(existence.written, clause),
                fix="leave NULL out on both sides: a IS NOT NULL AND (a, b) NOT IN (SELECT x, y FROM r WHERE x IS NOT "
                "NULL AND ..), or ask NOT EXISTS (SELECT 1 FROM r WHERE x = a AND y = b)",
            )
        unknown = []
        if not all(sure):
            nulls = self._rows(scope, existence)
            absent = Expr.condition(_is_null(nulls.node.column(nulls.columns[0]).tree))
            unknown.append(_Tested(replace(nulls, node=filtered(nulls.node, [absent]))))
        if not all(known):
            unknown.append(_Tested(self._rows(scope, existence), (_is_null(trees[0]),)))
        return unknown

    def _rows(self, scope: Scope, existence: Existence) -> SubqueryRows:
        query = existence.query.unnest()
        if not isinstance(query, exp.Query):
            raise InternalError(f"{type(query).__name__} is no query")
        return self.rows(query, scope)


def _has_equal_key(node: Node, outer: Scope) -> bool:
    """Whether the row around tells, by equalities, a key of which there is one row."""
    around = pa.schema(list(outer.types.items()))
    while isinstance(node, Map):
        pairs = [comparison(term, around, node.input.schema) for term in split(node.where)]
        equal = {pair.right.plain for pair in pairs if pair is not None and pair.operator == "="}
        if any(set(key) <= equal for key in node.input.unique_keys):
            return True
        node = node.input
    return False


def _with_column(from_item: FromItem, hidden: Expr) -> tuple[FromItem, exp.Column]:
    """A hidden column in the scope, and how it is written."""
    internal = hidden.columns[0]
    table = f"{HIDDEN_TABLE}{internal}"
    column = Visible(table, "value", internal, hidden.type, starred=False, bare=False, form=hidden.form)
    scope = replace(from_item.scope, columns=(*from_item.scope.columns, column))
    return replace(from_item, scope=scope), exp.column("value", table=table)


def _null_is_false(node: exp.Expr, clause: str) -> bool:
    """Whether it is the same if the answer of ``node`` is NULL or false: in a condition, but for NOT."""
    existence = Existence.of(node)
    if existence is None or existence.negated:
        return False
    below, above = node, node.parent
    while isinstance(above, exp.And | exp.Or | exp.Paren):
        below, above = above, above.parent
    if isinstance(above, exp.Where):
        return isinstance(above.parent, exp.Filter)
    if isinstance(above, exp.If):
        return above.this is below and not (isinstance(above.parent, exp.Case) and above.parent.args.get("this"))
    return above is None and clause in ("WHERE", "HAVING", "JOIN .. ON")


def _equal(scope: Scope, existence: Existence, rows: SubqueryRows, clause: str) -> tuple[exp.Expr, ...]:
    """Each value equal to its column."""
    names = [str(number) for number in range(len(rows.columns))]
    found = [rows.node.column(internal) for internal in rows.columns]
    columns = [
        Visible(_IN_COLUMNS, name, internal, one.type, starred=False, bare=False, form=one.form)
        for name, internal, one in zip(names, rows.columns, found, strict=True)
    ]
    both = scope + Scope(tuple(columns))
    terms = [
        exp.EQ(this=value.copy(), expression=exp.column(name, table=_IN_COLUMNS))
        for value, name in zip(existence.values, names, strict=False)
    ]
    return tuple(conjunct for term in terms for conjunct in conjuncts(resolved(term, both, clause)))


def _is_null(value: exp.Expr) -> exp.Expr:
    return exp.Is(this=value.copy(), expression=exp.null())
