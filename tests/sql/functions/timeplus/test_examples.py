"""Every function over rows with NULLs and edges, beside ClickHouse.

The expressions stand in ``examples/``, one a line: all rows must agree.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from dovetail.sql.functions.dialects import TIMEPLUS
from tests.oracles.timeplus import names_of, our_values, their_values
from tests.oracles.values import Cell, same
from tests.sql.functions.timeplus.test_own_names import ANSWERS

EXAMPLES = [
    line
    for path in sorted((Path(__file__).parent / "examples").glob("*.txt"))
    for line in path.read_text().splitlines()
    if line and not line.startswith("#")
]


@cache
def expected() -> dict[str, list[Cell] | str]:
    """All answers at once: most of the time of a question is that of the way there."""
    return dict(zip(EXAMPLES, their_values(EXAMPLES), strict=True))


@pytest.mark.parametrize("expression", EXAMPLES)
def test_values_are_those_of_clickhouse(expression: str) -> None:
    theirs = expected()[expression]
    assert not isinstance(theirs, str), theirs
    ours = our_values(expression)
    assert [pair for pair in zip(ours, theirs, strict=True) if not same(*pair)] == []


def test_every_function_has_an_example() -> None:
    shown = set().union(*map(names_of, [*EXAMPLES, *ANSWERS]))
    registered = TIMEPLUS.registry.functions
    missing = {function.row.usage for function in registered.values()} - {registered[name].row.usage for name in shown}
    assert missing == set()


def test_no_example_stands_twice() -> None:
    assert sorted(set(EXAMPLES)) == sorted(EXAMPLES)
