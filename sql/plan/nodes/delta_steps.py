"""The steps of a delta join: which input the rows of a path meet, by which columns, and what is kept for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dovetail.sql.expressions.expression import Expr
from dovetail.sql.expressions.predicates import split
from dovetail.sql.plan.nodes.join import Join


@dataclass(frozen=True)
class ColumnPair:
    """Columns of two inputs that have to be equal; NULL equals NULL where ``null_safe``."""

    left: str
    right: str
    null_safe: bool


@dataclass(frozen=True)
class InputCopy:
    """An input that is kept for a step, by some of its columns."""

    input: int
    keys: tuple[str, ...]
    null_safe: tuple[bool, ...]


@dataclass(frozen=True)
class PathStep:
    """Rows of the path of the input ``path`` meet those of ``of`` under equal keys.

    probe_columns columns of the rows of the path, as many as the keys of ``of``
    equal  what has to be equal besides
    terms  further conditions whose columns are together now
    """

    path: int
    of: InputCopy
    probe_columns: tuple[str, ...]
    equal: tuple[ColumnPair, ...]
    terms: tuple[Expr, ...]


@dataclass(frozen=True)
class DeltaStep:
    """What all paths do at once, and the copies that it takes."""

    paths: tuple[PathStep, ...]

    @property
    def copies(self) -> tuple[InputCopy, ...]:
        """In the order of the inputs."""
        return tuple(sorted({one.of for one in self.paths}, key=lambda copy: (copy.input, copy.keys, copy.null_safe)))


def delta_steps(links: Sequence[Join], paths: Sequence[Sequence[int]]) -> tuple[DeltaStep, ...]:
    """In the order in which they are taken; one less than there are inputs."""
    return steps_of(Conditions.of(links), paths)


@dataclass(frozen=True)
class Conditions:
    """What a chain of joins compares.

    columns  of each input
    """

    columns: tuple[frozenset[str], ...]
    pairs: tuple[ColumnPair, ...]
    terms: tuple[Expr, ...]

    @staticmethod
    def of(links: Sequence[Join]) -> Conditions:
        inputs = (links[0].left, *(link.right for link in links))
        pairs = [ColumnPair(*pair) for link in links for pair in link.pairs]
        terms = [term for link in links if link.residual is not None for term in split(link.residual)]
        return Conditions(tuple(frozenset(one.schema.names) for one in inputs), tuple(pairs), tuple(terms))

    def between(self, joined: frozenset[int], other: int) -> Iterator[ColumnPair]:
        """The pairs of a column of ``joined``, on the left, and one of ``other``."""
        before = self.columns_in(joined)
        for pair in self.pairs:
            if pair.left in before and pair.right in self.columns[other]:
                yield pair
            elif pair.right in before and pair.left in self.columns[other]:
                yield ColumnPair(pair.right, pair.left, pair.null_safe)

    def columns_in(self, inputs: frozenset[int]) -> frozenset[str]:
        return frozenset().union(*(self.columns[place] for place in inputs))

    def copy(self, joined: frozenset[int], other: int) -> InputCopy | None:
        """As what the rows of ``joined`` meet ``other``; None where no equality compares them."""
        keys = self._keys(joined, other)
        if not keys:
            return None
        return InputCopy(other, tuple(pair.right for pair in keys), tuple(pair.null_safe for pair in keys))

    def _keys(self, joined: frozenset[int], other: int) -> list[ColumnPair]:
        """Of the pairs of each column of ``other`` the first."""
        first: dict[str, ColumnPair] = {}
        for pair in self.between(joined, other):
            first.setdefault(pair.right, pair)
        return [first[name] for name in sorted(first)]

    def step(self, path: int, joined: frozenset[int], other: int) -> PathStep | None:
        of = self.copy(joined, other)
        if of is None:
            return None
        keys = self._keys(joined, other)
        equal = tuple(pair for pair in self.between(joined, other) if pair not in keys)
        before, after = self.columns_in(joined), self.columns_in(joined | {other})
        terms = [
            term
            for term in self.terms
            if set(term.columns) <= after and (len(joined) == 1 or not set(term.columns) <= before)
        ]
        return PathStep(path, of, tuple(pair.left for pair in keys), equal, tuple(terms))


def steps_of(conditions: Conditions, paths: Sequence[Sequence[int]]) -> tuple[DeltaStep, ...]:
    """``paths`` go where an equality leads."""
    found = []
    for number in range(1, len(paths)):
        steps = (conditions.step(path[0], frozenset(path[:number]), path[number]) for path in paths)
        found.append(DeltaStep(tuple(step for step in steps if step is not None)))
    return tuple(found)
