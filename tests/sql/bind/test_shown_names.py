"""Errors speak of what the user wrote, an operator or a word, and name what works in its place."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import SqlError
from tests.sql.world import World

OPERATORS = [
    ("s + 1", "a + b takes numbers, not text", "CAST(s AS int) + 1"),
    ("s + s", "a + b takes numbers, not text", "s || s"),
    ("s - n", "a - b takes numbers, not text", "CAST(s AS int) - n"),
    ("s * n", "a * b takes numbers, not text", "CAST(s AS int) * n"),
    ("n / s", "a / b takes numbers, not text", "n / CAST(s AS int)"),
    ("n % s", "a % b takes numbers, not text", "n % CAST(s AS int)"),
    ("-s", "-a takes numbers, not text", "-CAST(s AS int)"),
    ("n[1]", "a[n] takes an array, not a number", "tags[1]"),
    ("s[1]", "a[n] takes an array, not a text", "substring(s, 1, 1)"),
    ("s.1", "a.x takes a tuple, not a text", "pair.1"),
    ("s.name", "a.x takes a tuple, not a text", "s:name"),
    ("pair.3", "a.x takes a position from 1 to 2", "pair.2"),
]


@pytest.fixture(scope="module")
def world() -> World:
    return World.of(
        "CREATE STREAM l (n int, s string, tags array(string), pair tuple(int, string), t datetime64(3))",
        "CREATE TABLE a (n INT, s VARCHAR, at TIMESTAMP) APPEND ONLY",
    )


@pytest.mark.parametrize(("text", "what", "mended"), OPERATORS)
def test_an_operator_is_shown_as_it_is_written(world: World, text: str, what: str, mended: str) -> None:
    with pytest.raises(SqlError) as fault:
        world.plan(f"SELECT {text} AS x FROM l")
    assert fault.value.what == what
    assert fault.value.where.startswith("line 1, column")
    assert fault.value.fix
    world.plan(f"SELECT {mended} AS x FROM l")
