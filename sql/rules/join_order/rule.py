"""Chains of INNER and LEFT joins are joined in the order that keeps the fewest rows between them.

    a JOIN b ON a.x = b.x JOIN c ON b.y = c.y       c of 25 rows: (a (b c))
    └──── one chain: any order has the same rows ────┘

    a LEFT JOIN d ON a.z = d.z JOIN b ON a.x = b.x           ((a b) d)
      └─ gives each row of a its rows of d, whatever else a row is joined with ─┘

Inner joins that are bidirectional, one over the other, are one chain; what stands below them, a scan, a subquery, a
FULL join, is an input of it and stays as it is. Every condition is tested where its columns are first together.

A LEFT join makes of each row on its left rows that have it whole, and looks at nothing of it but what its ON reads. So
it may stand over or under any join that reads none of the columns it adds, as soon as those of its ON are there; its
right side is an input. Where an inner join over it reads its columns it stays where it is, an input with all below it;
what WHERE reads of them is above all joins, or ends the chain. Where no order of all is worth it, LEFT joins are such
inputs too, and inner joins have an order of their own: so is the one of a view that is older than this.

The order of the text stays

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

from collections.abc import Iterable, Iterator, Mapping
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
from sql.rules.join_order.join_graph import Inputs, JoinGraph, JoinSizes, PaddedInput, places
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
        if isinstance(node, Join) and (made := self._with_left_joins(node)) is not None:
            return made
        if not isinstance(node, Join) or not _is_plain(node):
            return rebuilt(node, self.of)
        chain = _Chain.of(node)
        chain = replace(chain, inputs=tuple(map(self.of, chain.inputs)))
        if not chain.has_orders:
            return chain.joined(chain.written)
        self.chains.append(chain.names)
        order = self._wanted(chain) or self._cheapest(chain)
        if order is None:
            return chain.joined(chain.written)
        self.taken.append(order)
        made = chain.joined(order.tree)
        return Map(made, identity(node))

    def _with_left_joins(self, node: Join) -> Node | None:
        """``node`` with LEFT joins among those that are put in order; None where there are none, or where they stay:
        then each is an input of a chain, or over one.
        """
        chain = _Chain.of(node, with_left_joins=True) if _is_plain(node) or _pads_right(node) else None
        if chain is None or not chain.left_joins or not chain.has_orders:
            return None
        self.chains.append(chain.names)
        order = self._wanted(chain) or self._cheapest(chain)
        if order is None:
            return None
        below = replace(chain, inputs=tuple(map(self.of, chain.inputs)))
        self.taken.append(order)
        return Map(below.joined(order.tree), identity(node))

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


def _pads_right(join: Join) -> bool:
    """Whether it is a LEFT join that is plain but for that."""
    return join.kind is JoinKind.LEFT and _is_plain(replace(join, kind=JoinKind.INNER))


def _stay_plain(node: Node, tree: JoinTree) -> bool:
    if not isinstance(tree, JoinPair):
        return True
    while isinstance(node, Map):
        node = node.input
    return (
        isinstance(node, Join)
        and (_is_plain(node) or _pads_right(node))
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

    uppermost   the last of the joins, of whose sort all are
    terms       the conditions of the INNER joins
    left_joins  by the place of their right input
    """

    uppermost: Join
    inputs: tuple[Node, ...]
    terms: tuple[Expr, ...]
    written: JoinPair
    left_joins: Mapping[int, Join] = field(default_factory=dict)

    @staticmethod
    def of(join: Join, with_left_joins: bool = False) -> _Chain:
        inputs: list[Node] = []
        terms: list[Expr] = []
        left_joins: dict[int, Join] = {}

        def below(node: Node, above: tuple[Expr, ...]) -> JoinTree:
            if isinstance(node, Join) and _alike(node, join):
                if _is_plain(node):
                    return pair(node, above)
                if with_left_joins and not _read(node.right, above):
                    return pair(node, above)
            inputs.append(node)
            return _name(node)

        def pair(node: Join, above: tuple[Expr, ...]) -> JoinPair:
            """``above``: the conditions of the INNER joins over ``node``."""
            if _pads_right(node):
                left = below(node.left, above)
                left_joins[len(inputs)] = node
                inputs.append(node.right)
                return JoinPair(left, _name(node.right))
            left, right = (below(side, (*above, *node.on)) for side in node.inputs)
            terms.extend(node.on)
            return JoinPair(left, right)

        written = pair(join, ())
        return _Chain(join, tuple(inputs), tuple(terms), written, left_joins)

    @property
    def has_orders(self) -> bool:
        """Whether there is more than one, which names could say."""
        return len(self.inputs) >= 3 and len(set(self.names)) == len(self.inputs)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(inputs_of_tree(self.written))

    @cached_property
    def graph(self) -> JoinGraph:
        return JoinGraph.of(self.inputs, self.terms, {place: join.on for place, join in self.left_joins.items()})

    def joined(self, tree: JoinTree) -> Node:
        """The joins in the order of ``tree``, each with the conditions whose columns it is the first to have."""
        if not isinstance(tree, JoinPair):
            return self.inputs[self.names.index(tree)]
        left, right = self._set(tree.left), self._set(tree.right)
        below = self.joined(tree.left), self.joined(tree.right)
        if right in self.graph.padded:
            (place,) = places(right)
            return self.left_joins[place].with_inputs(*below)
        last = not self.graph.always_there & ~(left | right)
        on = tuple(term.expr for term in self.graph.terms if term.meets(left, right) or (last and term.about_one))
        return replace(self.uppermost, kind=JoinKind.INNER, left=below[0], right=below[1], on=on)

    def expect_equalities(self, tree: JoinTree) -> None:
        """Raises Unsupported for a pair that no join can make."""
        for pair in _pairs(tree):
            left, right = self._set(pair.left), self._set(pair.right)
            for padded in self.graph.padded.values():
                if padded.alone in (left, right) and (padded.alone == left or padded.needs & ~left):
                    raise self._not_added(pair, padded)
            if not self.graph.connects(left, right):
                raise _no_equality(pair)

    def _not_added(self, pair: JoinPair, padded: PaddedInput) -> Unsupported:
        (added,), needs = self._names_of(padded.alone), " ".join(self._names_of(padded.needs))
        return Unsupported(
            f"join_order joins {pair.left} with {pair.right}, and a LEFT JOIN adds {added} to rows that have {needs}",
            where="SETTINGS join_order",
            fix=f"make {added} alone the right one of a pair whose left one has {needs}",
        )

    def _names_of(self, inputs: Inputs) -> list[str]:
        return [self.names[place] for place in places(inputs)]

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
    free = _is_plain(join) or _pads_right(join)
    return free and (join.pad, join.max_buffered_bytes) == (other.pad, other.max_buffered_bytes)


def _read(node: Node, terms: Iterable[Expr]) -> bool:
    """Whether a column of ``node`` is in one of ``terms``."""
    names = set(node.schema.names)
    return any(not names.isdisjoint(term.columns) for term in terms)


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
        f"join_order names {' '.join(inputs_of_tree(tree))}, and no chain of joins has these inputs",
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
