"""Random expressions of Timeplus beside ClickHouse; ``python -m tests.oracles.fuzz --dialect timeplus`` makes more."""

from __future__ import annotations

import random
from itertools import islice

from dovetail.sql.functions.dialects import TIMEPLUS
from tests.oracles.fuzz import run
from tests.oracles.timeplus import names_of, oracle
from tests.oracles.timeplus_expressions import expressions

COUNT = 100


def test_random_expressions_mean_the_same() -> None:
    with oracle() as both:
        outcome = run(both, seed=1, count=COUNT)
    assert [str(difference) for difference in outcome.differences] == []
    assert outcome.refused == []
    assert outcome.compared > 0.95 * COUNT, "ClickHouse stops at too many of them"
    assert outcome.nulls < 0.2 * outcome.values, "what is NULL on both sides shows little"


def test_the_expressions_reach_most_of_the_functions_that_are_used_most() -> None:
    made = islice(expressions(random.Random(1)), 2000)
    called = set().union(*(names_of(sample.text) for sample in made))
    assert len(called & TIMEPLUS.registry.functions.keys()) > 150


def test_the_same_seed_makes_the_same_expressions() -> None:
    first, second = ([one.text for one in islice(expressions(random.Random(5)), 50)] for _ in range(2))
    assert first == second
