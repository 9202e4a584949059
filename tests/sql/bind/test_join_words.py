"""Each word before a JOIN is read, or refused: leaving it out gives another plan, but for those that say nothing."""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest

from dovetail.changelog.errors import SqlError
from tests.sql.planner import Planner

DDL = (
    "CREATE STREAM l (k int, v int, at datetime64(3))",
    "CREATE STREAM r (k int, w int)",
    "CREATE TABLE a (k INT, v INT)",
    "CREATE TABLE b (k INT, w INT)",
)
SIDES = (("l", "r"), ("table(l) AS l", "table(r) AS r"), ("a", "b"))
METHODS = ("", "ASOF", "LATEST", "NATURAL", "ANY")
KEPT = ("", "LEFT", "RIGHT", "FULL")
KINDS = ("", "INNER", "OUTER", "SEMI", "ANTI", "CROSS")
CONDITIONS = ("", "USING (k)", "ON {0}.k = {1}.k", "ON {0}.k = {1}.k AND {0}.v >= {1}.w")
SILENT = {"INNER", "OUTER", "CROSS"}
"""Words that say what is meant without them too; so does LEFT before SEMI and ANTI."""


@cache
def planner() -> Planner:
    return Planner.of(*DDL)


@cache
def plan(items: tuple[str, str], words: tuple[str, ...], condition: str) -> str | None:
    """The plan of a join; None where it is refused."""
    left, right = (item.split(" ")[-1] for item in items)
    on = condition.format(left, right)
    query = (
        f"SELECT {right if 'RIGHT' in words else left}.k AS x FROM {items[0]} {' '.join(words)} JOIN {items[1]} {on}"
    )
    try:
        made = planner().plan(query)
    except SqlError:
        return None
    return made.snapshot.sql if made.snapshot is not None else made.explain()


@pytest.mark.parametrize("items", SIDES, ids=lambda items: items[0])
def test_a_word_that_is_taken_changes_the_plan(items: tuple[str, str]) -> None:
    for method, side, kind, condition in product(METHODS, KEPT, KINDS, CONDITIONS):
        words = tuple(filter(None, (method, side, kind)))
        made = plan(items, words, condition)
        for word in words if made is not None else ():
            fewer = tuple(other for other in words if other != word)
            says_nothing = word in SILENT or (word == "LEFT" and kind in ("SEMI", "ANTI"))
            assert says_nothing or plan(items, fewer, condition) != made, (words, condition)


@pytest.mark.parametrize("items", SIDES, ids=lambda items: items[0])
@pytest.mark.parametrize(
    ("words", "condition"),
    [
        ("OUTER", CONDITIONS[2]),
        ("LEFT INNER", CONDITIONS[2]),
        ("LEFT CROSS", ""),
        ("NATURAL CROSS", ""),
        ("CROSS", CONDITIONS[2]),
        ("CROSS", CONDITIONS[1]),
        ("NATURAL", CONDITIONS[2]),
        ("SEMI", ""),
        ("LEFT ANTI", ""),
        ("FULL SEMI", CONDITIONS[1]),
        ("LEFT", ""),
        ("FULL OUTER", ""),
    ],
)
def test_words_without_a_meaning_together_are_refused(items: tuple[str, str], words: str, condition: str) -> None:
    assert plan(items, tuple(words.split()), condition) is None
