"""The order of joins that keeps the fewest rows between them.

What the inputs hold is kept in any order; what a join makes is kept for the next one, unless both share their key and
are one n-way join. Of orders that keep equally many the one with the lowest tree is taken, in which a row has the
fewest joins before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dovetail.sql.rules.join_order.join_graph import Inputs, JoinSizes

MOST_TRIED = 8
"""Of so many inputs every order is tried; of more the two that make the fewest rows are joined, again and again."""

Key = frozenset[str]


@dataclass(frozen=True)
class Ordered:
    """``inputs`` joined in some order: ``left`` and ``right``, by ``key``; neither of one alone.

    between  the rows that are kept between its joins, without what it makes itself
    height   the joins that a row has before it at most
    """

    inputs: Inputs
    between: float = 0.0
    height: int = 0
    key: Key = frozenset()
    left: Ordered | None = None
    right: Ordered | None = None

    @property
    def rank(self) -> tuple[float, int]:
        return self.between, self.height


@dataclass(frozen=True)
class Search:
    """``merges``: joins of one key become an n-way join."""

    sizes: JoinSizes
    merges: bool

    def joined(self, left: Ordered, right: Ordered) -> Ordered:
        key = self.sizes.key(left.inputs, right.inputs)
        between = left.between + right.between
        if left.height and not (self.merges and left.key == key):
            between += self.sizes.rows(left.inputs)
        if right.height:
            between += self.sizes.rows(right.inputs)
        height = 1 + max(left.height, right.height)
        return Ordered(left.inputs | right.inputs, between, height, key, left, right)

    def best(self) -> Ordered | None:
        """None where some inputs are compared with no other."""
        count = len(self.sizes.graph.inputs)
        return self._of_all_orders() if count <= MOST_TRIED else self._greedy()

    def _of_all_orders(self) -> Ordered | None:
        graph = self.sizes.graph
        found: dict[Inputs, dict[Key, Ordered]] = {}
        for inputs in range(1, graph.all + 1):
            if inputs & (inputs - 1) == 0:
                found[inputs] = {frozenset(): Ordered(inputs)}
                continue
            best: dict[Key, Ordered] = {}
            for left, right in _halves(inputs):
                if not found[left] or not found[right] or not graph.connects(left, right):
                    continue
                for made in self._ways(found[left], found[right]):
                    if made.key not in best or made.rank < best[made.key].rank:
                        best[made.key] = made
            found[inputs] = best
        return min(found[graph.all].values(), key=lambda one: one.rank, default=None)

    def _ways(self, left: dict[Key, Ordered], right: dict[Key, Ordered]) -> Iterator[Ordered]:
        for one in left.values():
            for other in right.values():
                yield self.joined(one, other)
                if self.merges and other.height:
                    # An n-way join grows on its right.
                    yield self.joined(other, one)

    def _greedy(self) -> Ordered | None:
        graph = self.sizes.graph
        parts = [Ordered(1 << place) for place in range(len(graph.inputs))]
        while len(parts) > 1:
            pairs = [
                (self.sizes.rows(one.inputs | other.inputs), place, second)
                for place, one in enumerate(parts)
                for second, other in enumerate(parts[place + 1 :], start=place + 1)
                if graph.connects(one.inputs, other.inputs)
            ]
            if not pairs:
                return None
            _, first, second = min(pairs)
            made = self.joined(parts[first], parts[second])
            parts = [made if place == first else part for place, part in enumerate(parts) if place != second]
        return parts[0]


def _halves(inputs: Inputs) -> Iterator[tuple[Inputs, Inputs]]:
    """Every way to cut ``inputs`` in two, the part with the first of them on the left."""
    first = inputs & -inputs
    rest = inputs ^ first
    part = rest
    while part:
        part = (part - 1) & rest
        yield first | part, rest ^ part
