"""A chain of joins that may have any order: its inputs and conditions, and the joins that an order makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from dovetail.changelog.errors import Unsupported
from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.expressions.expression import Expr
from dovetail.sql.plan.join_order import JoinPair, JoinTree, inputs_of_tree
from dovetail.sql.plan.joins import Bidirectional
from dovetail.sql.plan.nodes import Join, Map, Node
from dovetail.sql.plan.query_plan import QueryPlan
from dovetail.sql.rules.bands import bands
from dovetail.sql.rules.join_keys import join_keys
from dovetail.sql.rules.join_order.estimates import Estimate, estimate
from dovetail.sql.rules.join_order.input_names import input_name
from dovetail.sql.rules.join_order.join_graph import Inputs, JoinGraph, JoinSizes, PaddedInput, places
from dovetail.sql.rules.join_order.search import Ordered, Search


@dataclass(frozen=True)
class KnownSizes:
    """About how many rows the inputs of a chain have, and what its joins keep ``between`` them as they are written."""

    names: tuple[str, ...]
    estimates: tuple[Estimate, ...]
    search: Search
    between: float

    @property
    def rows(self) -> Mapping[str, float]:
        return {name: one.rows for name, one in zip(self.names, self.estimates, strict=True)}


@dataclass(frozen=True)
class JoinsChain:
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
    def of(join: Join, with_left_joins: bool = False) -> JoinsChain:
        inputs: list[Node] = []
        terms: list[Expr] = []
        left_joins: dict[int, Join] = {}

        def below(node: Node, above: tuple[Expr, ...]) -> JoinTree:
            if isinstance(node, Join) and _alike(node, join):
                if is_plain(node):
                    return pair(node, above)
                if with_left_joins and not _read(node.right, above):
                    return pair(node, above)
            inputs.append(node)
            return input_name(node)

        def pair(node: Join, above: tuple[Expr, ...]) -> JoinPair:
            """``above``: the conditions of the INNER joins over ``node``."""
            if pads_right(node):
                left = below(node.left, above)
                left_joins[len(inputs)] = node
                inputs.append(node.right)
                return JoinPair(left, input_name(node.right))
            left, right = (below(side, (*above, *node.on)) for side in node.inputs)
            terms.extend(node.on)
            return JoinPair(left, right)

        written = pair(join, ())
        return JoinsChain(join, tuple(inputs), tuple(terms), written, left_joins)

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

    @cached_property
    def straight(self) -> JoinPair | None:
        """The inputs one by one, each where an equality compares it with those before; None where none does."""
        tree: JoinTree = self.names[0]
        left = list(self.names[1:])
        while left:
            joined = self._set(tree)
            found = next((name for name in left if self.graph.connects(joined, self._set(name))), None)
            if found is None:
                return None
            tree = JoinPair(tree, found)
            left.remove(found)
        return tree if isinstance(tree, JoinPair) else None

    def known(self, plan: QueryPlan) -> KnownSizes | None:
        """None where one input is of unknown size, or nobody is to ask."""
        sizes = plan.sizes
        if sizes is None:
            return None
        known = [estimate(node, sizes) for node in self.inputs]
        estimates = tuple(one for one in known if one is not None)
        if len(estimates) < len(known):
            return None
        search = Search(JoinSizes(self.graph, estimates), merges=bool(plan.settings["multiway_join"]))
        return KnownSizes(self.names, estimates, search, self.ordered(self.written, search).between)

    def _set(self, tree: JoinTree) -> int:
        return sum(1 << self.names.index(name) for name in inputs_of_tree(tree))


def _alike(join: Join, other: Join) -> bool:
    free = is_plain(join) or pads_right(join)
    return free and (join.pad, join.max_buffered_bytes) == (other.pad, other.max_buffered_bytes)


def _read(node: Node, terms: Iterable[Expr]) -> bool:
    """Whether a column of ``node`` is in one of ``terms``."""
    names = set(node.schema.names)
    return any(not names.isdisjoint(term.columns) for term in terms)


def is_plain(join: Join) -> bool:
    return join.kind is JoinKind.INNER and isinstance(join.method, Bidirectional) and join.max_rows_per_key is None


def pads_right(join: Join) -> bool:
    """Whether it is a LEFT join that is plain but for that."""
    return join.kind is JoinKind.LEFT and is_plain(replace(join, kind=JoinKind.INNER))


def stay_plain(node: Node, tree: JoinTree) -> bool:
    if not isinstance(tree, JoinPair):
        return True
    while isinstance(node, Map):
        node = node.input
    return (
        isinstance(node, Join)
        and (is_plain(node) or pads_right(node))
        and stay_plain(node.left, tree.left)
        and stay_plain(node.right, tree.right)
    )


def _pairs(tree: JoinTree) -> Iterator[JoinPair]:
    if isinstance(tree, JoinPair):
        yield tree
        yield from _pairs(tree.left)
        yield from _pairs(tree.right)


def _no_equality(pair: JoinPair) -> Unsupported:
    return Unsupported(
        f"join_order joins {pair.left} with {pair.right}, which no equality compares: every row would meet every row",
        where="SETTINGS join_order",
        fix="pair what an equality of ON or WHERE compares, or leave join_order out",
    )


def with_keys(plan: QueryPlan, node: Node) -> Node:
    """``node`` of ``plan`` with the keys of its joins, and their kind, as they will be."""
    return bands(join_keys(plan.with_rows(node))).rows
