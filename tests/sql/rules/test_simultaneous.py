"""An equality of two times that both have a watermark bounds a join as a range of 0 does."""

from __future__ import annotations

import random

import pytest

from dovetail.joins.operators.range import Band
from dovetail.sql.plan.joins import Bidirectional, Range
from dovetail.sql.plan.nodes import Join
from dovetail.sql.plan.properties import walk
from tests.sql.world import World

TIMED = "k INT, at TIMESTAMP, tz TIMESTAMPTZ, n INT, WATERMARK FOR at AS at - INTERVAL '5 seconds'"
DDL = (
    f"CREATE TABLE a ({TIMED}) APPEND ONLY",
    f"CREATE TABLE b ({TIMED}) APPEND ONLY",
    f"CREATE TABLE p ({TIMED}, PRIMARY KEY (k))",
    "CREATE STREAM l (k int, t datetime64(3))",
    "CREATE STREAM r (k int, t datetime64(3))",
)
EQUAL = "SELECT a.k, a.at, a.n, b.n AS m FROM a {} b ON a.k = b.k AND a.at = b.at"


def the_join(query: str) -> Join:
    made = World.of(*DDL).plan(query).output
    assert made is not None
    return next(node for node in walk(made) if isinstance(node, Join))


def test_explain_says_what_bounds_the_state() -> None:
    text = the_join(EQUAL.format("JOIN")).line
    assert text.startswith("Range inner  on=a.k=b.k,a.at=b.at  a.at = b.at")
    assert "state: left 5 s of a.at behind b.at, right 5 s of b.at behind a.at" in text
    assert "unbounded" not in text


def test_the_equality_of_times_may_be_the_only_one() -> None:
    assert the_join("SELECT a.k FROM a JOIN b ON a.at = b.at").method == Range(Band("a.at", "b.at", 0, 0))


def test_streams_have_a_watermark_where_that_is_said() -> None:
    query = "SELECT l.k FROM l JOIN r ON l.k = r.k AND l.t = r.t"
    assert the_join(query).method == Bidirectional()
    assert the_join(f"{query} SETTINGS watermark_delay = '5s'").method == Range(Band("l.t", "r.t", 0, 0))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a.k FROM a JOIN b ON a.k = b.k AND a.tz = b.tz",
        "SELECT a.k FROM a JOIN b ON a.k = b.k AND a.at = b.tz",
        "SELECT a.k FROM a JOIN b ON a.k = b.k AND a.at IS NOT DISTINCT FROM b.at",
        "SELECT a.k FROM a JOIN p ON a.k = p.k AND a.at = p.at",
    ],
)
def test_what_no_two_watermarks_follow_is_kept(query: str) -> None:
    assert the_join(query).method == Bidirectional()


def test_semi_and_anti_joins_and_the_append_form_follow() -> None:
    for kind in ("LEFT SEMI", "LEFT ANTI"):
        assert isinstance(the_join(f"SELECT a.k FROM a {kind} JOIN b ON a.k = b.k AND a.at = b.at").method, Range)
    assert not World.of(*DDL).plan(EQUAL.format("FULL JOIN"), output="append").updating


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN", "FULL JOIN"])
def test_the_rows_are_those_of_the_join_without_watermarks(kind: str) -> None:
    """Out of order by less than the watermark is behind, so that nothing is late."""
    world = World.of(*DDL)
    query = EQUAL.format(kind)
    world.start(query)
    generator = random.Random(kind)
    for second in range(0, 60, 2):
        for table in ("a", "b"):
            world.insert(table, *(_row(generator, second) for _ in range(3)))
        world.drain()
    assert world.table() == world.recomputed(query)
    assert len(world.table()) > 20


def _row(generator: random.Random, second: int) -> dict[str, object]:
    return _at(generator.randrange(2), second + generator.randrange(4), second)


def _at(key: int, second: int, number: int) -> dict[str, object]:
    return {"k": key, "at": f"2024-03-01 00:{second // 60:02}:{second % 60:02}", "tz": None, "n": number}


def test_what_both_watermarks_have_passed_is_forgotten() -> None:
    world = World.of(*DDL)
    world.start(EQUAL.format("JOIN"))
    early, later = _at(1, 0, 0), _at(1, 60, 0)
    world.insert("a", early)
    world.insert("b", early)
    assert len(world.drain()) == 1
    for table in ("a", "b"):
        world.insert(table, later)
    assert len(world.drain()) == 1
    world.insert("b", early)
    assert world.drain() == []
