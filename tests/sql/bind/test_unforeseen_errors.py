"""Whatever is asked is answered, or refused with what, where and fix: nothing else is raised."""

from __future__ import annotations

import random

import pytest

from dovetail.changelog.errors import DovetailError, InternalError
from dovetail.sql.syntax.faults import unforeseen_as_errors
from tests.sql.world import World

FORMED = (
    "SELECT k, v + 1 AS x FROM table(dim) AS d WHERE v > 1 AND k LIKE 'a%' ORDER BY v DESC LIMIT 2 OFFSET 1",
    "SELECT k, count(*) AS n, sum(v) AS s FROM table(dim) GROUP BY k HAVING count(*) > 0 ORDER BY n",
    "WITH c(a, b) AS (SELECT k, v FROM table(dim)) SELECT a, max(b) OVER (PARTITION BY a ORDER BY b) AS m FROM c",
    "SELECT d.k, p.v FROM table(dim) AS d LEFT JOIN table(plain) AS p ON d.k = p.k AND d.v BETWEEN 1 AND 2",
    "SELECT CASE WHEN v IN (1, 2) THEN 'x' ELSE NULL END AS c, CAST(v AS string) AS t FROM table(dim)",
    "SELECT k FROM table(dim) UNION ALL SELECT k FROM table(plain) ORDER BY k LIMIT 1",
    "SELECT x.a, x.b FROM (VALUES (1, 'a'), (2, NULL)) AS x(a, b) WHERE EXISTS (SELECT 1 FROM table(dim))",
    "SELECT i, k FROM flow JOIN dim ON flow.k = dim.k WHERE i > 1",
    "SELECT count() AS c FROM tumble(flow, 1m) GROUP BY window_start",
)


@pytest.fixture(scope="module")
def world() -> World:
    world = World.of(
        "CREATE STREAM flow (i int, k string)",
        "CREATE MUTABLE STREAM dim (k string, v int) PRIMARY KEY k",
        "CREATE TABLE plain (k VARCHAR, v INT)",
    )
    world.insert("dim", {"k": "a", "v": 1})
    return world


def plan(world: World, query: str) -> None:
    if world.plan(query).bounded:
        world.engine.snapshot(query)


def mutated(chance: random.Random) -> str:
    """A statement with some words left out, doubled, swapped, or put in from another."""
    words, others = (chance.choice(FORMED).split() for _ in range(2))
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(words))
        words[at : at + chance.randint(0, 2)] = chance.sample(others, chance.randint(0, 2))
        words = words or ["SELECT"]
    return " ".join(words)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_mutated_is_answered_or_refused(world: World, seed: int) -> None:
    chance = random.Random(seed)
    for query in (mutated(chance) for _ in range(200)):
        try:
            plan(world, query)
        except InternalError as fault:
            pytest.fail(f"{query}\n{fault}")
        except DovetailError:
            continue


@pytest.mark.parametrize(
    "query",
    [
        'SELECT CAST(1 AS "INT) , (SELECT 1") AS x',
        "SELECT * FROM (VALUES (1, 2, 3), (1, 2)) AS v",
        "SELECT 1 AS a UNION ALL SELECT now()",
        f"SELECT 1{' + 1' * 450} AS x FROM table(dim)",
        f"SELECT k FROM table(dim) WHERE {' OR '.join(f'v = {number}' for number in range(450))}",
    ],
)
def test_what_cannot_be_is_refused(world: World, query: str) -> None:
    with pytest.raises(DovetailError) as fault:
        plan(world, query)
    assert fault.value.what
    assert fault.value.where
    assert not isinstance(fault.value, InternalError)


def test_a_null_is_of_any_type(world: World) -> None:
    assert [row["x"] for row in world.engine.snapshot("SELECT x FROM (VALUES (NULL), ('b')) AS v(x)")] == [None, "b"]


def test_long_chains_are_answered(world: World) -> None:
    query = f"SELECT 1{' + 1' * 100} AS x FROM table(dim) WHERE v = 1{' AND v = 1' * 150}"
    assert [row["x"] for row in world.engine.snapshot(query)] == [101]


def test_what_nobody_has_foreseen_is_told_in_order() -> None:
    with pytest.raises(InternalError) as fault, unforeseen_as_errors("planning it"):
        raise IndexError("list index out of range")
    assert fault.value.what == "planning it failed: IndexError"
    assert fault.value.where
    assert fault.value.fix
