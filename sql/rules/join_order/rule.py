"""Chains of INNER joins are joined in the order that keeps the fewest rows between them.

    a JOIN b ON a.x = b.x JOIN c ON b.y = c.y       c of 25 rows: (a (b c))
    └──── one chain: any order has the same rows ────┘

Inner joins that are bidirectional, one over the other, are one chain; what stands below them, a scan, a subquery, an
outer join, is an input of it and stays as it is. Every condition is tested where its columns are first together. The
order of the text stays

- where one input is of unknown size, or has no records yet
- where no order keeps a fifth fewer rows, by an estimate that is a guess itself; or it keeps few, as inputs do that
  have only begun
- where a join goes by time, or rows would be told apart by other columns: what all orders have in common is their rows
- where final rows are asked for, or a budget of rows for each key
- below a join that takes the last row that came, LATEST and one-shot ASOF
- under ``SETTINGS join_reorder = 0``

No order has a join without an equality. A materialized view gets the setting ``join_order`` when it is created, which
says its order from then on, whatever becomes of its inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from changelog.errors import SqlError, Unsupported
from joins.dataflow.ports import JoinKind
from sql.expressions.expression import Expr
from sql.plan.join_order import JoinOrder, JoinPair, JoinTree, inputs_of_tree, read_orders
from sql.plan.joins import Bidirectional
from sql.plan.maps import identity
from sql.plan.nodes import HIDDEN, Join, Map, Node, rebuilt
from sql.plan.query_plan import QueryPlan
from sql.plan.unique_keys import unique_keys
from sql.rules.bands import bands
from sql.rules.join_keys import join_keys
from sql.rules.join_order.estimates import estimate
from sql.rules.join_order.join_graph import JoinGraph, JoinSizes, places
from sql.rules.join_order.search import Ordered, Search

WORTH = 0.8
"""What another order keeps of what the text's does, at most."""
LEAST_ROWS = 1_000
"""So many rows the text's order keeps between joins at least, or stays: inputs that have just begun tell little."""


def join_order(plan: QueryPlan) -> QueryPlan:
    """Raises SqlError for an order of the setting that is of no chain, Unsupported for one that a chain cannot have."""
    rule = _Rule(plan, list(read_orders(plan.settings.text("join_order"))))
    made = plan.with_rows(rule.of(plan.rows))
    if rule.wanted:
        raise _no_chain(rule.wanted[0], rule.chains)
    return replace(made, orders=tuple(rule.taken))


@dataclass
class _Rule:
    """``wanted``: orders of the setting that no chain has had yet; ``chains``: those that could have one."""

    plan: QueryPlan
    wanted: list[JoinPair]
    taken: list[JoinOrder] = field(default_factory=list)
    chains: list[tuple[str, ...]] = field(default_factory=list)

    def of(self, node: Node) -> Node:
        if isinstance(node, Join) and node.how.takes_one and node.how.answers_once:
            # Of the rows of a batch it takes the last: the order of joins below is an order of rows.
            return node
        if not isinstance(node, Join) or not _is_plain(node):
            return rebuilt(node, self.of)
        chain = _Chain.of(node)
        chain = replace(chain, inputs=tuple(map(self.of, chain.inputs)))
        if len(chain.inputs) < 3 or len(set(chain.names)) < len(chain.inputs):
            return chain.joined(chain.written)
        self.chains.append(chain.names)
        order = self._wanted(chain) or self._cheapest(chain)
        if order is None:
            return chain.joined(chain.written)
        self.taken.append(order)
        made = chain.joined(order.tree)
        return Map(made, identity(node))

    def _wanted(self, chain: _Chain) -> JoinOrder | None:
        for tree in self.wanted:
            if sorted(inputs_of_tree(tree)) == sorted(chain.names):
                self.wanted.remove(tree)
                chain.expect_equalities(tree)
                if not self._may_have(chain, tree):
                    raise _stays(chain.names)
                return JoinOrder(tree)
        return None

    def _cheapest(self, chain: _Chain) -> JoinOrder | None:
        settings = self.plan.settings
        if self.plan.sizes is None or not settings["join_reorder"] or settings["join_order"] is not None:
            return None
        known = [estimate(node, self.plan.sizes) for node in chain.inputs]
        estimates = tuple(one for one in known if one is not None)
        if len(estimates) < len(known):
            return None
        search = Search(JoinSizes(chain.graph, estimates), merges=bool(settings["multiway_join"]))
        best, written = search.best(), chain.ordered(chain.written, search)
        if best is None or written.between < LEAST_ROWS or best.between > WORTH * written.between:
            return None
        tree = chain.tree(best)
        if not isinstance(tree, JoinPair) or not self._may_have(chain, tree):
            return None
        rows = {name: one.rows for name, one in zip(chain.names, estimates, strict=True)}
        return JoinOrder(tree, best.between, written.between, rows)

    def _may_have(self, chain: _Chain, tree: JoinPair) -> bool:
        """Whether joins in this order are what those of the text are, bidirectional, and tell rows apart by as much."""
        settings = self.plan.settings
        if self.plan.final or settings["max_fan_out_action"] == "dead_letter":
            return False
        before, after = (self._with_keys(chain.joined(one)) for one in (chain.written, tree))
        if not _stay_plain(before, chain.written) or not _stay_plain(after, tree):
            return False
        return _told_apart(before) == _told_apart(after)

    def _with_keys(self, node: Node) -> Node:
        return bands(join_keys(self.plan.with_rows(node))).rows


def _is_plain(join: Join) -> bool:
    return join.kind is JoinKind.INNER and isinstance(join.how, Bidirectional) and join.max_rows_per_key is None


def _stay_plain(node: Node, tree: JoinTree) -> bool:
    if not isinstance(tree, JoinPair):
        return True
    while isinstance(node, Map):
        node = node.input
    return (
        isinstance(node, Join)
        and _is_plain(node)
        and _stay_plain(node.left, tree.left)
        and _stay_plain(node.right, tree.right)
    )


def _told_apart(node: Node) -> set[frozenset[str]]:
    """The unique keys of which no part is one."""
    keys = {frozenset(key) for key in unique_keys(node)}
    return {key for key in keys if not any(other < key for other in keys)}


@dataclass(frozen=True)
class _Chain:
    """Joins that may have any order: their inputs, conditions, and the order that they are written in.

    uppermost  the last of the joins, of whose sort all are
    """

    uppermost: Join
    inputs: tuple[Node, ...]
    terms: tuple[Expr, ...]
    written: JoinPair

    @staticmethod
    def of(join: Join) -> _Chain:
        inputs: list[Node] = []
        terms: list[Expr] = []

        def below(node: Node) -> JoinTree:
            if isinstance(node, Join) and _alike(node, join):
                left, right = below(node.left), below(node.right)
                terms.extend(node.on)
                return JoinPair(left, right)
            inputs.append(node)
            return _name(node)

        written = JoinPair(below(join.left), below(join.right))
        return _Chain(join, tuple(inputs), (*terms, *join.on), written)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(inputs_of_tree(self.written))

    @cached_property
    def graph(self) -> JoinGraph:
        return JoinGraph.of(self.inputs, self.terms)

    def joined(self, tree: JoinTree) -> Node:
        """The joins in the order of ``tree``, each with the conditions whose columns it is the first to have."""
        if not isinstance(tree, JoinPair):
            return self.inputs[self.names.index(tree)]
        left, right = self._set(tree.left), self._set(tree.right)
        last = left | right == self.graph.all
        on = tuple(term.expr for term in self.graph.terms if term.meets(left, right) or (last and term.about_one))
        return replace(self.uppermost, left=self.joined(tree.left), right=self.joined(tree.right), on=on)

    def expect_equalities(self, tree: JoinTree) -> None:
        for pair in _pairs(tree):
            if not self.graph.connects(self._set(pair.left), self._set(pair.right)):
                raise _no_equality(pair)

    def tree(self, order: Ordered) -> JoinTree:
        if order.left is None or order.right is None:
            (place,) = places(order.inputs)
            return self.names[place]
        return JoinPair(self.tree(order.left), self.tree(order.right))

    def ordered(self, tree: JoinTree, search: Search) -> Ordered:
        if not isinstance(tree, JoinPair):
            return Ordered(self._set(tree))
        return search.joined(self.ordered(tree.left, search), self.ordered(tree.right, search))

    def _set(self, tree: JoinTree) -> int:
        return sum(1 << self.names.index(name) for name in inputs_of_tree(tree))


def _alike(join: Join, other: Join) -> bool:
    return _is_plain(join) and (join.pad, join.max_buffered_bytes) == (other.pad, other.max_buffered_bytes)


def _name(node: Node) -> str:
    """The alias that stands before the columns of an input."""
    return next((name.partition(".")[0] for name in node.schema.names if not name.startswith(HIDDEN)), "")


def _pairs(tree: JoinTree) -> Iterator[JoinPair]:
    if isinstance(tree, JoinPair):
        yield tree
        yield from _pairs(tree.left)
        yield from _pairs(tree.right)


def _no_chain(tree: JoinPair, chains: list[tuple[str, ...]]) -> SqlError:
    there = "; ".join(" ".join(names) for names in chains)
    return SqlError(
        f"join_order names {' '.join(inputs_of_tree(tree))}, and no chain of INNER joins has these inputs",
        where="SETTINGS join_order",
        fix=f"name all inputs of a chain, once each; there is: {there}"
        if there
        else "leave it out: this query has no three inputs whose order is free",
    )


def _no_equality(pair: JoinPair) -> Unsupported:
    return Unsupported(
        f"join_order joins {pair.left} with {pair.right}, which no equality compares: every row would meet every row",
        where="SETTINGS join_order",
        fix="pair what an equality of ON or WHERE compares, or leave join_order out",
    )


def _stays(names: tuple[str, ...]) -> Unsupported:
    return Unsupported(
        f"the joins of {' '.join(names)} have to stay in the order of the text: one of them goes by time or has a "
        "budget of rows, final rows are asked for, or rows would be told apart by other columns",
        where="SETTINGS join_order",
        fix="leave join_order out, and write the joins in the order that they are to have",
    )
