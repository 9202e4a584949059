"""The inputs of a chain of joins, the conditions between them, and about how many rows any of them make together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from sqlglot import exp

from dovetail.sql.expressions.expression import Expr, columns_read
from dovetail.sql.plan.nodes import Node
from dovetail.sql.rules.join_order.estimates import ANY_CONDITION, Estimate

Inputs = int
"""A set of inputs: a bit for each, the first one's is 1."""


@dataclass(frozen=True)
class JoinTerm:
    """A conjunct of the conditions, which reads columns of ``inputs``.

    sides    of an equality whose sides read different inputs, these; None: of any other
    columns  of an equality: the columns that its sides are, '' for one that is computed
    """

    expr: Expr
    inputs: Inputs
    sides: tuple[Inputs, Inputs] | None = None
    columns: tuple[str, str] = ("", "")

    @property
    def about_one(self) -> bool:
        """Whether it reads one input, or none."""
        return self.inputs & (self.inputs - 1) == 0

    def meets(self, left: Inputs, right: Inputs) -> bool:
        """Whether all that it reads is in the two together, and not in one of them alone."""
        return not self.inputs & ~(left | right) and bool(self.inputs & ~left) and bool(self.inputs & ~right)

    def compares(self, left: Inputs, right: Inputs) -> bool:
        """Whether it is an equality of something of ``left`` and something of ``right``."""
        if self.sides is None:
            return False
        first, second = self.sides
        return not (first & ~left or second & ~right) or not (first & ~right or second & ~left)


@dataclass(frozen=True)
class PaddedInput:
    """The right side of a LEFT join: an input that adds columns to rows, and takes none away.

    alone  the set of it
    terms  the ON of its join, which nothing else may have
    """

    alone: Inputs
    terms: tuple[JoinTerm, ...]

    @property
    def needs(self) -> Inputs:
        """What stands on the left of its join at least."""
        found = 0
        for term in self.terms:
            found |= term.inputs
        return found & ~self.alone

    def joins(self, left: Inputs) -> bool:
        return not self.needs & ~left and any(term.compares(left, self.alone) for term in self.terms)

    @property
    def compared(self) -> tuple[str, ...] | None:
        """The columns of the left by which its join goes; None where it has conditions besides."""
        found = []
        for term in self.terms:
            if term.sides is None or not all(term.columns) or self.alone not in term.sides:
                return None
            found.append(term.columns[1 - term.sides.index(self.alone)])
        return tuple(found)


@dataclass(frozen=True)
class JoinGraph:
    """Inputs that any order may join, and the conditions that hold of what they make.

    padded  those of them that LEFT joins add, by the set of each alone. No other condition reads their columns
    """

    inputs: tuple[Node, ...]
    terms: tuple[JoinTerm, ...]
    padded: Mapping[Inputs, PaddedInput] = field(default_factory=dict)

    @staticmethod
    def of(
        inputs: Sequence[Node], terms: Sequence[Expr], padded: Mapping[int, Sequence[Expr]] | None = None
    ) -> JoinGraph:
        """``padded``: by the place of an input, the ON of its LEFT join."""
        owner = {name: 1 << place for place, node in enumerate(inputs) for name in node.schema.names}
        added = {
            1 << place: PaddedInput(1 << place, tuple(_term(term, owner) for term in on))
            for place, on in (padded or {}).items()
        }
        return JoinGraph(tuple(inputs), tuple(_term(term, owner) for term in terms), added)

    def connects(self, left: Inputs, right: Inputs) -> bool:
        """Whether a join of ``left`` with ``right`` has an equality; a LEFT join adds its input from the right."""
        if left in self.padded:
            return False
        if right in self.padded:
            return self.padded[right].joins(left)
        return any(term.compares(left, right) for term in self.terms)

    @property
    def all(self) -> Inputs:
        return (1 << len(self.inputs)) - 1

    @cached_property
    def always_there(self) -> Inputs:
        """Without those that LEFT joins add."""
        return self.all & ~sum(self.padded)


def _term(term: Expr, owner: dict[str, Inputs]) -> JoinTerm:
    tree = term.tree.unnest()
    inputs = _inputs(term.columns, owner)
    if isinstance(tree, exp.EQ | exp.NullSafeEQ):
        sides = [side.unnest() for side in (tree.left, tree.right)]
        left, right = (_inputs(columns_read(side), owner) for side in sides)
        if left and right and not left & right:
            first, second = (side.name if isinstance(side, exp.Column) else "" for side in sides)
            return JoinTerm(term, inputs, (left, right), (first, second))
    return JoinTerm(term, inputs)


def _inputs(columns: Sequence[str], owner: dict[str, Inputs]) -> Inputs:
    found = 0
    for column in columns:
        found |= owner[column]
    return found


@dataclass(frozen=True)
class JoinSizes:
    """About how many rows the inputs of ``graph`` have, and so any of them joined."""

    graph: JoinGraph
    estimates: tuple[Estimate, ...]
    _known: dict[Inputs, float] = field(default_factory=dict)

    def rows(self, inputs: Inputs) -> float:
        """Those of every combination that the conditions among ``inputs`` let through."""
        if inputs not in self._known:
            self._known[inputs] = self._rows(inputs)
        return self._known[inputs]

    def _rows(self, inputs: Inputs) -> float:
        always = inputs & self.graph.always_there
        within = [term for term in self.graph.terms if not term.inputs & ~always]
        rows = self._met(always, within)
        for padded in self.graph.padded.values():
            if padded.alone & inputs:
                rows *= max(1.0, self._met(padded.alone, padded.terms, beside=padded.needs))
        return rows

    def _met(self, inputs: Inputs, terms: Sequence[JoinTerm], beside: Inputs = 0) -> float:
        """The combinations of ``inputs`` that ``terms`` let through, for one of the inputs ``beside`` them."""
        rows = 1.0
        for place in places(inputs):
            rows *= self.estimates[place].rows
        equalities = [term for term in terms if term.sides is not None]
        rows *= ANY_CONDITION ** sum(term.sides is None and bool(term.inputs) for term in terms)
        for place in sorted(places(inputs | beside), key=lambda one: -self.estimates[one].all):
            key = self._key_among(place, equalities)
            if key:
                rows /= self.estimates[place].all
                equalities = [term for term in equalities if key.isdisjoint(term.columns)]
        for term in equalities:
            rows /= max(self.estimates[place].values for place in places(term.inputs))
        return rows

    def _key_among(self, place: int, equalities: Sequence[JoinTerm]) -> set[str]:
        """A unique key of an input whose columns are all compared."""
        compared = {column for term in equalities for column in term.columns if column}
        return next((set(key) for key in self._keys[place] if key and set(key) <= compared), set())

    @cached_property
    def _keys(self) -> list[list[tuple[str, ...]]]:
        return [node.unique_keys for node in self.graph.inputs]

    def key(self, left: Inputs, right: Inputs) -> frozenset[str]:
        """By what a join of both goes: equal for joins that an n-way join makes one of."""
        padded = self.graph.padded.get(right)
        if padded is None:
            return frozenset(self._classes[term.columns[0]] if all(term.columns) else term.expr.text
                             for term in self.graph.terms if term.compares(left, right))  # fmt: skip
        if padded.compared is None:
            # Each row has matches of its own: no n-way join has it.
            return frozenset(f"{term.expr.text} of {right}" for term in padded.terms)
        return frozenset(self._classes.get(column, column) for column in padded.compared)

    @cached_property
    def _classes(self) -> dict[str, str]:
        """Column → one of those that equal it."""
        classes: dict[str, str] = {}
        for term in self.graph.terms:
            if term.sides is None or not all(term.columns):
                continue
            first, second = (classes.setdefault(column, column) for column in term.columns)
            classes |= {column: first for column, found in classes.items() if found == second}
        return classes


def places(inputs: Inputs) -> Iterator[int]:
    place = 0
    while inputs >> place:
        if inputs >> place & 1:
            yield place
        place += 1
