"""Which state may be larger than memory, and how much of it is there, by the settings of a query."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import SqlError, StateLimitExceeded
from dovetail.joins.dataflow.state_memory import StateMemory
from tests.sql.world import World

TABLES = (
    "CREATE TABLE t (k int, v int, PRIMARY KEY (v)) WITH (connector = 'kafka', topic = 't')",
    "CREATE TABLE u (k int, w int, PRIMARY KEY (w)) WITH (connector = 'kafka', topic = 'u')",
)
GROUPS = "SELECT t.k, count(*) AS n FROM t JOIN u ON t.k = u.k GROUP BY t.k, u.w"
GIVEN = StateMemory(4_000, 7)


@pytest.fixture
def world() -> World:
    return World.of(*TABLES)


@pytest.mark.parametrize(
    ("settings", "memory"),
    [
        ("join_max_buffered_bytes = 4000", [None, None, None]),
        ("default_hash_join = 'hybrid'", [StateMemory(524_288_000), StateMemory(524_288_000), None]),
        ("default_hash_join = 'hybrid', join_max_buffered_bytes = 4000, max_hot_keys = 7", [GIVEN, GIVEN, None]),
        ("default_hash_table = 'hybrid', join_max_buffered_bytes = 4000, max_hot_keys = 7", [GIVEN, None, GIVEN]),
        ("default_hash_join = 'HYBRID', default_hash_table = 'hybrid', join_max_buffered_bytes = 4000", None),
    ],
)
def test_the_memory_of_each_level(world: World, settings: str, memory: list[StateMemory | None] | None) -> None:
    """Tables by their primary key, the join, the groups."""
    flow = world.plan(f"{GROUPS} SETTINGS {settings}").dataflow
    assert [flow.memory(level) for level in (1, 2, 3)] == (memory or [StateMemory(4_000)] * 3)


def test_a_hybrid_join_has_no_limit_at_which_it_ends(world: World) -> None:
    limited = "SELECT t.v, u.w FROM t JOIN u ON t.k = u.k SETTINGS join_max_buffered_bytes = 600"
    for query in (limited, f"{limited}, default_hash_join = 'hybrid', buckets = 2"):
        world.start(query)
        for key in range(100):
            world.insert("t", {"k": key, "v": key})
            world.insert("u", {"k": key, "w": key})
        if "hybrid" not in query:
            with pytest.raises(StateLimitExceeded, match="join_max_buffered_bytes = 600"):
                world.drain()
        else:
            world.drain()
            assert world.table() == world.recomputed("SELECT t.v, u.w FROM t JOIN u ON t.k = u.k")


def test_groups_are_right_when_they_are_not_all_in_memory(world: World) -> None:
    world.start(f"{GROUPS} SETTINGS default_hash_join = 'hybrid', default_hash_table = 'hybrid', max_hot_keys = 2")
    for turn in range(3):
        for key in range(30):
            world.insert("t", {"k": key % (7 + turn), "v": key})
            world.insert("u", {"k": key % 5, "w": key})
        world.delete("t", {"k": 3 % (7 + turn), "v": 3})
        world.drain()
        assert world.table() == world.recomputed(GROUPS)


def test_another_word_is_refused_with_those_that_there_are(world: World) -> None:
    with pytest.raises(SqlError) as raised:
        world.plan(f"{GROUPS} SETTINGS default_hash_join = 'hybird'")
    assert "default_hash_join" in raised.value.what
    assert raised.value.fix == 'did you mean "hybrid"? one of: memory, hybrid'
