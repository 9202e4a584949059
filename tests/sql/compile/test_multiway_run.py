"""N-way joins, run in memory: they emit what the chain of joins of two does, and add up to the batch result."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import StateLimitExceeded
from dovetail.sql.plan.nodes import MultiwayJoin
from dovetail.sql.plan.properties import walk
from tests.sql.compile.changing import TABLES, Changing, assert_adds_up
from tests.sql.world import World

SELECT = "SELECT a.id, a.v, b.id AS other, b.w, c.w AS mark FROM held AS a"
QUERIES = [
    f"{SELECT} {rest}"
    for rest in (
        "JOIN seen AS b ON a.k = b.k JOIN marks AS c ON b.k = c.k",
        "JOIN seen AS b ON a.k = b.k LEFT JOIN marks AS c ON a.k = c.k",
        "LEFT JOIN seen AS b ON a.k = b.k LEFT JOIN marks AS c ON a.k = c.k",
        "LEFT JOIN seen AS b ON a.k = b.k JOIN marks AS c ON a.k = c.k AND coalesce(b.w, 1.5) <= c.w",
        "JOIN seen AS b ON a.id = b.id JOIN held AS d ON b.id = d.id LEFT JOIN seen AS c ON c.id = d.id",
        "JOIN seen AS b ON a.v = b.w AND a.k = b.k JOIN marks AS c ON b.k = c.k AND c.w = b.w",
        ", seen AS b, marks AS c WHERE a.k = b.k AND a.k = c.k AND a.v < b.w AND c.w > a.v + b.w",
        "JOIN seen AS b ON a.k IS NOT DISTINCT FROM b.k JOIN marks AS c ON a.k IS NOT DISTINCT FROM c.k",
        "JOIN seen AS b ON a.k = b.k JOIN (SELECT k, max(w) AS w FROM marks GROUP BY k) AS c ON b.k = c.k",
        "JOIN (SELECT id, k, w + 1 AS w FROM seen WHERE w > 0) AS b ON a.k = b.k JOIN marks AS c ON b.k = c.k",
    )
]
CHAIN = {"multiway_join": False}


def joined_at_once(world: World, query: str, **settings: bool) -> list[int]:
    """How many joins each n-way join is made of."""
    plan = world.plan(query, **settings)
    return [
        node.joins for fragment in plan.fragments for node in walk(fragment.output) if isinstance(node, MultiwayJoin)
    ]


@pytest.mark.parametrize("query", QUERIES)
def test_they_add_up_to_the_batch_result(query: str) -> None:
    assert joined_at_once(World.of(*TABLES), query) != []
    assert_adds_up(query, rounds=6)


@pytest.mark.parametrize("query", QUERIES)
def test_after_every_batch_they_have_changed_what_the_chain_has(query: str) -> None:
    worlds = [World.of(*TABLES) for _ in range(2)]
    assert joined_at_once(worlds[1], query, **CHAIN) == []
    changers = [Changing.of(query) for _ in worlds]
    for world, settings in zip(worlds, ({}, CHAIN), strict=True):
        world.start(query, **settings)
    for number in range(8):
        for world, changer in zip(worlds, changers, strict=True):
            changer.change(world)
            world.drain()
            if number % 3 == 2:
                world.engine.restart()
        assert worlds[0].table() == worlds[1].table()


STREAMS = (
    "CREATE MUTABLE STREAM m (k int, v int) PRIMARY KEY k",
    "CREATE STREAM n (id int, k int, w string) PRIMARY KEY id SETTINGS mode='versioned_kv'",
    "CREATE STREAM o (id int, k int, x float64) PRIMARY KEY id SETTINGS mode='changelog_kv'",
    "CREATE TABLE p (k INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5 seconds') APPEND ONLY",
    "CREATE TABLE q (k INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '1 minute') APPEND ONLY",
    "CREATE STREAM s (k int, v int)",
)


def test_upserts_are_answered_by_the_row_that_stands() -> None:
    """Of a primary key that is the join key in the join itself, of others in a level before."""
    world = World.of(*STREAMS)
    query = "SELECT v, w, x FROM m JOIN n ON m.k = n.k LEFT JOIN o ON n.k = o.k"
    assert joined_at_once(world, query) == [2]
    world.start(query)
    world.insert("m", {"k": 1, "v": 10})
    world.insert("n", {"id": 5, "k": 1, "w": "a"})
    assert world.drain() == [({"v": 10, "w": "a", "x": None}, 1)]
    world.insert("m", {"k": 1, "v": 11})
    world.insert("o", {"id": 6, "k": 1, "x": 0.5})
    world.drain()
    assert world.table() == {(11, "a", 0.5): 1}
    world.insert("n", {"id": 5, "k": 2, "w": "b"})
    assert world.drain() == [({"v": 11, "w": "a", "x": 0.5}, -1)]
    world.insert("n", {"id": 5, "k": 1, "w": "c"})
    world.delete("o", {"id": 6, "k": 1, "x": 0.5})
    world.drain()
    assert world.table() == {(11, "c", None): 1}


def test_late_rows_are_left_out_input_by_input() -> None:
    """A row is late by the watermark of its own input: of p after 5 seconds, of q after a minute."""
    world = World.of(*STREAMS)
    query = "SELECT p.at AS p_at, q.at AS q_at, m.v FROM p JOIN q ON p.k = q.k JOIN m ON p.k = m.k"
    assert joined_at_once(world, query) == [2]
    world.start(query)
    world.insert("m", {"k": 1, "v": 1})
    for table in ("p", "q"):
        world.insert(table, {"k": 2, "at": "2026-01-01 00:01:00"})
    world.drain()
    for table in ("p", "q"):
        world.insert(table, {"k": 1, "at": "2026-01-01 00:00:30"})
    assert world.drain() == []
    world.insert("p", {"k": 1, "at": "2026-01-01 00:01:00"})
    [(row, delta)] = world.drain()
    assert (str(row["q_at"])[11:19], delta) == ("00:00:30", 1)


def test_it_keeps_within_the_limit_of_its_state() -> None:
    query = "SELECT a.v FROM s AS a JOIN s AS b ON a.k = b.k JOIN s AS c ON b.k = c.k SETTINGS seek_to = 'earliest'"
    world = World.of(*STREAMS)
    assert joined_at_once(world, query) == [2]
    assert "max_buffered_bytes=524288000" in world.explain(query)
    world.start(f"{query}, join_max_buffered_bytes = 20")
    for value in range(4):
        world.insert("s", {"k": 1, "v": value})
    with pytest.raises(StateLimitExceeded, match="join_max_buffered_bytes = 20"):
        world.drain()
