"""Random expressions of a dialect: ours beside the answers of the database that the dialect comes from.

    python -m tests.oracles.fuzz --dialect risingwave --seed 7 --count 2500

A dialect plugs in with a module ``tests/oracles/<dialect>.py`` that offers ``oracle()``. The same seed and count give
the same expressions. Without ``--dialect`` every one is asked; without ``--seed`` it is a new one, which is printed.
"""

from __future__ import annotations

import argparse
import importlib
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol

from dovetail.changelog.errors import SqlError
from tests.oracles.values import Cell, same

DIALECTS = ("risingwave", "timeplus")


@dataclass(frozen=True)
class Sample:
    """An expression of the dialect, with its parts: an oracle can ask which of them failed.

    template  the text, with a place ``{0}``, ``{1}``, .. for each part
    kind      its type, as the dialect names it
    """

    template: str
    parts: tuple[Sample, ...] = ()
    kind: str = ""

    @property
    def text(self) -> str:
        return self.template.format(*(part.text for part in self.parts)) if self.parts else self.template


class Oracle(Protocol):
    """Both sides of one dialect, over the same rows."""

    def expressions(self, rng: random.Random) -> Iterator[Sample]:
        """Random expressions, without end."""
        ...

    def ours(self, sample: Sample) -> Sequence[Cell]:
        """One value for each row. Raises SqlError where we refuse the expression."""
        ...

    def theirs(self, sample: Sample) -> Sequence[Cell] | None:
        """One value for each row, NULL where a call fails; None where the database refuses the expression."""
        ...


@dataclass(frozen=True)
class Disagreement:
    text: str
    row: int
    ours: Cell
    theirs: Cell

    def __str__(self) -> str:
        return f"{self.text}\n    row {self.row}: ours {self.ours!r}, theirs {self.theirs!r}"


@dataclass
class Comparison:
    """What a run of samples showed.

    refused  expressions that one side took and the other did not, with the reason
    skipped  how many the database refused: the generator should seldom make such
    values   how many values were compared, and how many of them are NULL
    """

    compared: int = 0
    skipped: int = 0
    values: int = 0
    nulls: int = 0
    differences: list[Disagreement] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.compared} expressions compared, {self.values} values of which {self.nulls} NULL, "
            f"{self.skipped} skipped, {len(self.refused)} refused here alone, {len(self.differences)} differ"
        )


def compare(oracle: Oracle, samples: Sequence[Sample]) -> Comparison:
    """Every sample, every row; of a sample that differs, the first row."""
    outcome = Comparison()
    for sample in samples:
        theirs = oracle.theirs(sample)
        if theirs is None:
            outcome.skipped += 1
            continue
        try:
            ours = oracle.ours(sample)
        except SqlError as fault:
            outcome.refused.append(f"{sample.text}\n    {fault.what}")
            continue
        outcome.compared += 1
        outcome.values += len(theirs)
        outcome.nulls += sum(value is None for value in theirs)
        for row, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            if not same(one, other):
                outcome.differences.append(Disagreement(sample.text, row, one, other))
                break
    return outcome


def run(oracle: Oracle, seed: int, count: int) -> Comparison:
    return compare(oracle, list(islice(oracle.expressions(random.Random(seed)), count)))


def oracle_of(dialect: str) -> AbstractContextManager[Oracle]:
    found: AbstractContextManager[Oracle] = importlib.import_module(f"tests.oracles.{dialect}").oracle()
    return found


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.oracles.fuzz", description=__doc__)
    parser.add_argument("--dialect", choices=DIALECTS, action="append")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--contexts", action="store_true", help="each in one place of a whole query, in turn")
    options = parser.parse_args(argv)
    seed = random.randrange(1_000_000) if options.seed is None else options.seed
    ran = importlib.import_module("tests.oracles.contexts").placed if options.contexts else run
    outcomes = [_reported(dialect, seed, options.count, ran) for dialect in options.dialect or DIALECTS]
    return 1 if any(outcome.differences or outcome.refused for outcome in outcomes) else 0


class Outcome(Protocol):
    refused: list[str]
    differences: list[Any]


def _reported(dialect: str, seed: int, count: int, ran: Callable[[Oracle, int, int], Outcome]) -> Outcome:
    print(f"{dialect}, seed {seed}", flush=True)
    with oracle_of(dialect) as oracle:
        outcome = ran(oracle, seed, count)
    for line in (*outcome.refused, *outcome.differences):
        print(line)
    print(outcome, flush=True)
    return outcome


if __name__ == "__main__":
    sys.exit(main())
