"""Expressions in every place of a whole query, by both dialects; ``fuzz --contexts`` makes more."""

from __future__ import annotations

import pytest

from tests.oracles.contexts import CONTEXTS, placed
from tests.oracles.fuzz import DIALECTS, oracle_of

pytestmark = pytest.mark.services
COUNT = 40


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_expression_means_the_same_in_every_place(dialect: str) -> None:
    assert len(CONTEXTS) < COUNT / 2
    with oracle_of(dialect) as oracle:
        outcome = placed(oracle, seed=3, count=COUNT)  # type: ignore[arg-type]
    assert outcome.differences == []
    assert outcome.refused == []
    assert outcome.compared == COUNT
