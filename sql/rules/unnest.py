"""Subqueries of conditions become joins: what they ask of the row around is pulled up, to the condition of the join.

    Apply semi                        Join semi  on c.id = o.cid
    ├─ scan customer c          ─▶    ├─ scan customer c
    └─ Map  where o.cid = c.id        └─ scan orders o
       └─ scan orders o

A condition that reads columns around moves up through filters, projections, inner joins, the sides of other joins that
these do not pad, and groups that it tells apart by an equality. What it reads of the subquery travels with it. An Apply
whose right side reads nothing around is a join.

What a subquery within a subquery reads of the outermost query passes the query between where that is asked for no more
than whether it has a row: a SEMI join in it is then an inner join, whose rows may stand there several times.

Source: Galindo-Legaria and Joshi, "Orthogonal Optimization of Subqueries and Aggregation" (SIGMOD 2001).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from dovetail.changelog.errors import Unsupported
from dovetail.joins.aggregates.aggregation import Fold
from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.expressions.comparison import comparison
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.expressions.predicates import conjunction, split
from dovetail.sql.plan.joins import Apply, UnresolvedJoin
from dovetail.sql.plan.joins.unresolved_join import JoinSyntax
from dovetail.sql.plan.maps import identity
from dovetail.sql.plan.nodes import (
    Aggregate,
    ArrayJoin,
    Join,
    LookupJoin,
    Map,
    Node,
    Output,
    Over,
    SetOperation,
    StaticJoin,
    TopN,
    UnionAll,
    Window,
    rebuilt,
)
from dovetail.sql.plan.properties import walk
from dovetail.sql.plan.query_plan import QueryPlan
from dovetail.sql.rules.unnest_tables import is_of_table, with_table

_KEEPS_LEFT = (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI, JoinKind.MARK)


def unnest(plan: QueryPlan) -> QueryPlan:
    """Raises Unsupported for a subquery that reads columns around it in a place from where they cannot be pulled up."""
    return plan.with_rows(_unnested(plan.rows))


def _unnested(node: Node) -> Node:
    """The innermost Apply first."""
    made = rebuilt(node, _unnested)
    if not isinstance(made, Join) or not isinstance(made.method, Apply):
        return made
    if made.method.single:
        return _valued(made)
    if not made.kind.is_existence:
        return _lateral(made)
    found = _Pull.of_apply(made).of(made.right)
    on = [term.substituted(found.computed) for term in made.on] + found.terms
    return with_table(replace(made, method=UnresolvedJoin(), right=found.node, on=tuple(on)))


def _valued(apply: Join) -> Node:
    """Each left row with the value of a subquery: that of its group, if the subquery is told by the row around."""
    pull = _Pull.of_apply(apply)
    (value,) = apply.right.schema.names
    computed = Expr.column(value, apply.right.schema.field(value).type)
    node: Node = apply.right
    while isinstance(node, Map) and node.where is None:
        computed = computed.substituted(dict(node.columns))
        node = node.input
    groups = pull.grouped(node) if isinstance(node, Aggregate) else None
    if groups is None:
        found = pull.of(apply.right)
        if not found.correlated:
            return with_table(replace(apply, method=UnresolvedJoin(), right=found.node))
        return _of_row(apply, found)
    joined, held = _beside_groups(apply, *groups)
    given = computed.substituted(held).held_as(computed.type)
    return Map(joined, (*identity(apply.left), (value, given)))


def _beside_groups(apply: Join, grouped: Aggregate, terms: list[Expr]) -> tuple[Join, dict[str, Expr]]:
    """Each left row beside the group that the row tells, and the columns of the aggregate, also of one that has no
    rows.
    """
    within = apply.right.schema.names[0]
    named = {name: f"{within} {name}" for name in grouped.schema.names if name not in grouped.by}
    below = (*((name, grouped.column(name)) for name in grouped.by),)
    renamed = Map(grouped, (*below, *((new, grouped.column(old)) for old, new in named.items())))
    counts = {one.name for one in grouped.aggregations if one.fold is Fold.COUNT}
    held = {old: _of_none(renamed.column(new), old in counts) for old, new in named.items()}
    return replace(apply, kind=JoinKind.LEFT, method=UnresolvedJoin(), right=renamed, on=tuple(terms)), held


def _lateral(apply: Join) -> Node:
    """Each left row with the rows of a subquery in FROM that the row tells: LEFT pads it where there are none."""
    pull = _Pull.of_apply(apply)
    columns, where = dict(identity(apply.right)), list[Expr]()
    node: Node = apply.right
    while isinstance(node, Map):
        below = dict(node.columns)
        columns = {name: expr.substituted(below) for name, expr in columns.items()}
        where = [term.substituted(below) for term in where] + split(node.where)
        node = node.input
    groups = pull.grouped(node) if isinstance(node, Aggregate) and not node.by else None
    if groups is not None:
        joined, held = _beside_groups(apply, *groups)
        given = {name: expr.substituted(held).held_as(expr.type) for name, expr in columns.items()}
        having = conjunction(term.substituted(held) for term in where)
        if having is not None and apply.kind is JoinKind.LEFT:
            given, having = {name: _where(having, expr) for name, expr in given.items()}, None
        return Map(joined, (*identity(apply.left), *given.items()), having)
    found = pull.of(apply.right)
    beside = replace(apply, method=UnresolvedJoin(), right=found.node, on=tuple(found.terms))
    computed = {name: found.computed.get(name) or found.node.column(name) for name in apply.right.schema.names}
    if apply.kind is JoinKind.LEFT and found.computed:
        there = _there(apply, found)
        computed = {name: expr if expr.plain else _where(there, expr) for name, expr in computed.items()}
    return Map(beside, (*identity(apply.left), *computed.items()))


def _where(condition: Expr, value: Expr) -> Expr:
    return Expr(exp.Case().when(condition.tree.copy(), value.tree.copy()), value.type)


def _there(apply: Join, found: _Pulled) -> Expr:
    """Whether a left row has a row of the subquery beside it, told by an equality between them."""
    pairs = [comparison(term, apply.left.schema, found.node.schema) for term in found.terms]
    key = next((pair.right for pair in pairs if pair is not None and pair.operator == "="), None)
    if key is None:
        raise _Pull.of_apply(apply).refused("rows that no equality with the row around tells")
    return Expr.condition(exp.Not(this=exp.Is(this=key.tree.copy(), expression=exp.null())))


def _of_row(apply: Join, found: _Pulled) -> Node:
    """Each left row with the value of the one row that its key finds: NULL where there is none."""
    joined = replace(apply, kind=JoinKind.LEFT, method=UnresolvedJoin(), right=found.node, on=tuple(found.terms))
    if is_of_table(found.node):
        return with_table(joined)
    (value,) = apply.right.schema.names
    computed = found.computed.get(value)
    if computed is None:
        return joined
    return Map(joined, (*identity(apply.left), (value, _where(_there(apply, found), computed))))


def _of_none(column: Expr, counts: bool) -> Expr:
    """An aggregate of a group that may not be there: a count is 0 then."""
    if not counts:
        return column
    return Expr(exp.Coalesce(this=column.tree.copy(), expressions=[exp.Literal.number(0)]), column.type)


def _own_names(node: Output | Node) -> list[str]:
    """The names that a node has, but for those that it takes from the query around: the rows below have none such."""
    if isinstance(node, Aggregate):
        return list(node.schema.names[len(node.by) :])
    if not isinstance(node, Map):
        return list(node.schema.names)
    below = node.input.schema.names
    return [name for name, expr in node.columns if expr.plain != name or name in below]


@dataclass(frozen=True)
class _Pulled:
    """A node that reads nothing around it, and what of it does.

    terms     conditions on its rows and the row around
    computed  columns that it had, over its rows and the row around
    """

    node: Node
    terms: list[Expr] = field(default_factory=list)
    computed: Mapping[str, Expr] = field(default_factory=dict)

    @property
    def correlated(self) -> bool:
        return bool(self.terms or self.computed)


@dataclass(frozen=True)
class _Pull:
    """``outer``: the columns around; ``apply``: whose right side it is; ``once``: it matters how often a row stands."""

    outer: frozenset[str]
    apply: Join
    once: bool

    @staticmethod
    def of_apply(apply: Join) -> _Pull:
        """A name that the right side has itself, as ``count(*)``, is none of a column around."""
        own = {name for below in walk(apply.right) for name in _own_names(below)}
        return _Pull(frozenset(apply.left.schema.names) - own, apply, once=not apply.kind.is_existence)

    def of(self, node: Node) -> _Pulled:
        if isinstance(node, Map):
            return self._map(node)
        if isinstance(node, Window | ArrayJoin):
            below = self.of(node.input)
            return replace(below, node=replace(node, input=below.node))
        if isinstance(node, StaticJoin | LookupJoin):
            return self._table_join(node)
        if isinstance(node, Aggregate):
            return self._aggregate(node)
        if isinstance(node, Join):
            return self._join(node)
        if isinstance(node, Over | TopN):
            return self._partitions(node)
        return self._set_operation(node) if isinstance(node, UnionAll | SetOperation) else _Pulled(node)

    def _map(self, node: Map) -> _Pulled:
        below = self.of(node.input)
        columns = [(name, expr.substituted(below.computed)) for name, expr in node.columns]
        where = [term.substituted(below.computed) for term in split(node.where)]
        terms = below.terms + [term for term in where if self._reads(term)]
        computed = {name: expr for name, expr in columns if self._reads(expr)}
        kept = [(name, expr) for name, expr in columns if name not in computed]
        names = {name for name, _ in kept}
        further = [name for name in self._read(below.node, [*terms, *computed.values()]) if name not in names]
        made = Map(
            below.node,
            (*kept, *((name, below.node.column(name)) for name in further)),
            conjunction(term for term in where if not self._reads(term)),
        )
        return _Pulled(made, terms, computed)

    def _aggregate(self, node: Aggregate) -> _Pulled:
        """Groups are told apart by the columns that are equal to something around, too."""
        below = (replace(self, once=True) if node.aggregations or node.recomputed else self).of(node.input)
        if not below.correlated:
            return replace(below, node=replace(node, input=below.node))
        for term in below.terms:
            if node.aggregations and not self._tells_apart(term, below.node):
                raise self.refused(f"groups of the rows for which {term.readable}")
        if not node.by or below.computed:
            raise self.refused("an aggregate over rows that the row around tells, which has a value even of none")
        by = tuple(dict.fromkeys([*node.by, *self._read(below.node, below.terms)]))
        return _Pulled(replace(node, input=below.node, by=by), below.terms)

    def grouped(self, node: Aggregate) -> tuple[Aggregate, list[Expr]] | None:
        """An aggregate over the rows that the row around tells as one for each group, and what tells the group; None
        where the row around tells nothing.
        """
        below = replace(self, once=True).of(node.input)
        if not below.correlated:
            return None
        for term in below.terms:
            if not self._tells_apart(term, below.node):
                raise self.refused(f"a value of the rows for which {term.readable}")
        if below.computed:
            raise self.refused("an aggregate of what reads the row around")
        by = tuple(self._read(below.node, below.terms))
        return replace(node, input=below.node, by=by), below.terms

    def _join(self, node: Join) -> _Pulled:
        left, right = self.of(node.left), self.of(node.right)
        every = isinstance(node.method, UnresolvedJoin) and node.method.syntax == JoinSyntax.ALL
        left_stays = node.kind in _KEEPS_LEFT
        right_stays = every and node.kind in (JoinKind.INNER, JoinKind.RIGHT)
        outer_terms = [term for term in node.on if self._reads(term)]
        if node.kind is JoinKind.SEMI and (outer_terms or right.correlated) and every and not self.once:
            return self._join(replace(node, kind=JoinKind.INNER))
        if outer_terms and not (every and node.kind is JoinKind.INNER):
            raise self.refused("a subquery or outer join within it whose condition reads a column of the query around")
        if (left.correlated and not left_stays) or (right.correlated and not right_stays):
            raise self.refused("the side of a join that is padded, or of which one row is taken")
        computed = {**left.computed, **right.computed}
        on = [term.substituted(computed) for term in node.on]
        around = [term for term in on if self._reads(term)]
        made = replace(node, left=left.node, right=right.node, on=tuple(term for term in on if term not in around))
        return _Pulled(made, left.terms + right.terms + around, computed)

    def _table_join(self, node: StaticJoin | LookupJoin) -> _Pulled:
        below = self.of(node.input)
        on = [term.substituted(below.computed) for term in node.on]
        around = [term for term in on if self._reads(term)]
        if around and node.kind is not JoinKind.INNER:
            raise self.refused("a subquery or outer join within it whose condition reads a column of the query around")
        made = replace(node, input=below.node, on=tuple(term for term in on if term not in around))
        return _Pulled(made, below.terms + around, below.computed)

    def _set_operation(self, node: UnionAll | SetOperation) -> _Pulled:
        if any(self.of(part).correlated for part in node.inputs):
            name = "UNION" if isinstance(node, UnionAll) else node.kind.value.upper()
            raise self.refused(f"a part of {name} that reads a column of the query around it")
        return _Pulled(node)

    def _partitions(self, node: Over | TopN) -> _Pulled:
        """The rows that the row around tells by equalities are a partition; among any others they have other ranks."""
        below = replace(self, once=True).of(node.input)
        if not below.correlated:
            return replace(below, node=replace(node, input=below.node))
        calls = [call for _, call in node.calls] if isinstance(node, Over) else []
        tells_apart = all(self._tells_apart(term, below.node) for term in below.terms)
        if below.computed or not tells_apart or any(map(self._reads, calls)):
            raise self.refused("the first rows, or a window function, of rows that the row around tells by no equality")
        by = tuple(dict.fromkeys([*node.by, *self._read(below.node, below.terms)]))
        return _Pulled(replace(node, input=below.node, by=by), below.terms)

    def _tells_apart(self, term: Expr, node: Node) -> bool:
        """Whether it says what a column of ``node`` is."""
        found = comparison(term, self.apply.left.schema, node.schema)
        return found is not None and found.operator == "=" and found.right.plain is not None

    def _reads(self, expr: Expr) -> bool:
        return not self.outer.isdisjoint(expr.columns)

    def _read(self, node: Node, exprs: Iterable[Expr]) -> list[str]:
        """The columns of ``node`` that they read."""
        names = dict.fromkeys(name for expr in exprs for name in expr.columns)
        return [name for name in names if name in node.schema.names]

    def refused(self, what: str) -> Unsupported:
        return Unsupported(
            f"a subquery that asks for {what} is not supported",
            where=self.apply.place,
            fix="compare with the row around in WHERE of the subquery itself, over joined tables if need be: EXISTS "
            "(SELECT 1 FROM r JOIN s ON r.k = s.k WHERE s.n = l.n), or group in FROM: EXISTS (SELECT 1 FROM (SELECT k, "
            "count(*) AS c FROM r GROUP BY k) AS g WHERE g.k = l.k AND g.c > 1); a value by an equality with the row "
            "around, with what is of that row outside: (SELECT max(n) FROM r WHERE r.k = l.k) + l.n; in the place of "
            "HAVING: (SELECT CASE WHEN count(*) > 1 THEN max(n) END FROM r WHERE r.k = l.k)",
        )
