"""The paths of a delta join: those for which the fewest copies of inputs are kept."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dovetail.sql.plan.nodes.delta_steps import Conditions, InputCopy

Path = tuple[int, ...]
MOST_INPUTS = 6
"""Of more there are too many paths, and each has a step, that is a stage, for every other input."""
_ROUNDS = 8


def delta_paths(conditions: Conditions, least_first: Sequence[int]) -> tuple[Path, ...] | None:
    """A path of each input, which begins with it and goes where an equality leads; None where none reaches all inputs.

    least_first   the inputs, those of few rows first: of equally many copies those are taken that spare the last ones
    """
    count = len(conditions.columns)
    candidates = [[_Candidate.of(conditions, path) for path in _paths(conditions, first)] for first in range(count)]
    if not all(candidates):
        return None
    search = _Search(candidates, tuple(least_first))
    return tuple(one.path for one in search.best())


def _paths(conditions: Conditions, first: int) -> Iterator[Path]:
    others = [place for place in range(len(conditions.columns)) if place != first]
    for order in itertools.permutations(others):
        path = (first, *order)
        if all(conditions.copy(frozenset(path[:step]), path[step]) for step in range(1, len(path))):
            yield path


@dataclass(frozen=True)
class _Candidate:
    """copies   by step, what is kept for the path"""

    path: Path
    copies: frozenset[tuple[int, InputCopy]]

    @staticmethod
    def of(conditions: Conditions, path: Path) -> _Candidate:
        copies = ((step, conditions.copy(frozenset(path[:step]), path[step])) for step in range(1, len(path)))
        return _Candidate(path, frozenset((step, copy) for step, copy in copies if copy is not None))


@dataclass(frozen=True)
class _Search:
    """Paths one by one, each as it goes best with the others, until none gets better."""

    candidates: Sequence[Sequence[_Candidate]]
    least_first: tuple[int, ...]

    def best(self) -> list[_Candidate]:
        chosen = min(self._starts(), key=self._cost)
        for _ in range(_ROUNDS):
            before = self._cost(chosen)
            for place, possible in enumerate(self.candidates):
                others = (chosen[:place], chosen[place + 1 :])
                chosen = min(([*others[0], one, *others[1]] for one in possible), key=self._cost)
            if self._cost(chosen) == before:
                break
        return chosen

    def _starts(self) -> Iterator[list[_Candidate]]:
        """For each order of the inputs the paths that are nearest to it."""
        for order in itertools.permutations(range(len(self.candidates))):
            yield [min(possible, key=lambda one: [order.index(at) for at in one.path]) for possible in self.candidates]

    def _cost(self, chosen: Sequence[_Candidate]) -> tuple[object, ...]:
        copies: set[tuple[int, InputCopy]] = set().union(*(one.copies for one in chosen))
        of_each = [sum(copy.input == place for _, copy in copies) for place in reversed(self.least_first)]
        return len(copies), of_each, [one.path for one in chosen]
