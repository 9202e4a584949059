"""Joins as of PROCTIME() without an equality: each left row with the rows of a small table that are there."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from dovetail.changelog.errors import Unsupported
from tests.sql.world import World

DDL = (
    "CREATE TABLE calls (id int, seconds int) APPEND ONLY",
    "CREATE TABLE tariffs (least int PRIMARY KEY, name varchar)",
    "CREATE TABLE bills (id int PRIMARY KEY, seconds int)",
)
LEFT = (
    "SELECT c.id, t.name FROM calls AS c LEFT JOIN tariffs FOR SYSTEM_TIME AS OF PROCTIME() AS t"
    " ON c.seconds >= t.least"
)


@pytest.mark.parametrize("seed", range(4))
def test_each_call_has_the_tariffs_of_its_moment(seed: int) -> None:
    chance, world = random.Random(seed), World.of(*DDL)
    world.start(LEFT)
    tariffs: dict[int, str] = {}
    expected: Counter[tuple[object, ...]] = Counter()
    for number in range(30):
        least = chance.randrange(5)
        if chance.random() < 0.3 and least in tariffs:
            world.delete("tariffs", {"least": least, "name": tariffs.pop(least)})
        elif chance.random() < 0.5:
            tariffs[least] = f"t{number}"
            world.insert("tariffs", {"least": least, "name": tariffs[least]})
        world.drain()
        seconds = chance.choice([None, *range(-1, 6)])
        world.insert("calls", {"id": number, "seconds": seconds})
        world.drain()
        met: list[str | None] = [name for start, name in tariffs.items() if seconds is not None and seconds >= start]
        expected.update((number, name) for name in met or [None])
    assert world.table() == expected


def test_the_table_is_in_every_bucket_and_the_calls_are_not_in_one() -> None:
    dataflow = World.of(*DDL).plan(LEFT).dataflow
    [join] = [node for node in dataflow.nodes if len(node.inputs) == 2]
    left, right = (dataflow.edge(edge) for edge in join.inputs)
    assert right.broadcast
    assert not left.broadcast
    assert set(left.keys) == {"c.id", "c.seconds"}


@pytest.mark.parametrize(
    "join", ["LEFT JOIN {} ON c.id = t.least AND c.seconds > 1", "JOIN {} USING (least)", ", {} WHERE c.id = t.least"]
)
def test_with_an_equality_it_is_a_lookup(join: str) -> None:
    world = World.of(*DDL, "CREATE TABLE coming (id int, least int, seconds int) APPEND ONLY")
    table = "tariffs FOR SYSTEM_TIME AS OF PROCTIME() AS t"
    assert "engine=faust" in world.explain(f"SELECT c.id, t.name FROM coming AS c {join.format(table)}")


def test_explain_says_that_the_table_is_in_every_bucket() -> None:
    assert "state: right the current rows, in every bucket" in World.of(*DDL).explain(LEFT)


@pytest.mark.parametrize(
    ("query", "what"),
    [
        (LEFT.replace("calls AS c", "bills AS c"), "a left side that is updated"),
        (LEFT.replace("LEFT JOIN", "LEFT SEMI JOIN").replace("c.id, t.name", "c.id"), "a SEMI JOIN"),
    ],
)
def test_what_is_not_answered_once_is_refused(query: str, what: str) -> None:
    with pytest.raises(Unsupported, match=what) as refused:
        World.of(*DDL).plan(query)
    assert "an equality with the primary key" in refused.value.fix
