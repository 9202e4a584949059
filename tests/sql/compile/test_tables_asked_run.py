"""SEMI, ANTI, EXISTS and IN over what is read once, and what is looked up, run in memory, against the batch result."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.sql.compile.changing import TABLES, Changing
from tests.sql.world import Row, World

GOODS = (
    "CREATE DICTIONARY goods (id int, k int, w double) PRIMARY KEY id SOURCE(MYSQL(HOST 'db' PORT 3306 USER 'u' "
    "PASSWORD 'p' DB 'shop' TABLE 'goods')) LAYOUT(COMPLEX_KEY_DIRECT())"
)
ROWS: list[Row] = [
    {"id": 1, "k": 1, "w": 1.5},
    {"id": 2, "k": None, "w": 0.0},
    {"id": 3, "k": 1, "w": None},
]
OF_TABLES = [
    "SELECT * FROM held WHERE k IN (SELECT k FROM table({t}))",
    "SELECT * FROM held WHERE k NOT IN (SELECT k FROM table({t}))",
    "SELECT * FROM held WHERE k NOT IN (SELECT k FROM table({t}) WHERE w > 1 AND k IS NOT NULL)",
    "SELECT * FROM held WHERE k NOT IN (SELECT k FROM table({t}) WHERE w > 100)",
    "SELECT * FROM held WHERE v NOT IN (SELECT w FROM table({t}) AS s WHERE s.k = held.k)",
    "SELECT * FROM held WHERE (k, v) IN (SELECT k, w FROM table({t}))",
    "SELECT * FROM held WHERE EXISTS (SELECT 1 FROM table({t}) AS s WHERE s.k = held.k AND s.w > held.v)",
    "SELECT * FROM held WHERE NOT EXISTS (SELECT 1 FROM table({t}) AS s WHERE s.w < held.v)",
    "SELECT * FROM held WHERE EXISTS (SELECT 1 FROM table({t}) WHERE w > 1) AND k NOT IN (SELECT 7 FROM table({t}))",
    "SELECT * FROM held WHERE k IN (SELECT k FROM table({t}) GROUP BY k HAVING count(*) > 1)",
    "SELECT id, k NOT IN (SELECT k FROM table({t})) AS apart, v IN (SELECT w FROM table({t})) AS among FROM held",
    "SELECT id, v > (SELECT max(w) FROM table({t})) AS above FROM held WHERE v > 1 OR k IN (SELECT k FROM table({t}))",
    "SELECT k, count(*) AS n FROM held GROUP BY k HAVING k IN (SELECT k FROM table({t}))",
    "SELECT held.id, k FROM held LEFT SEMI JOIN table({t}) AS s ON s.k = held.k AND s.w > held.v",
    "SELECT held.id, k FROM held LEFT ANTI JOIN table({t}) AS s ON s.k = held.k",
    "SELECT held.id, k FROM held LEFT ANTI JOIN table({t}) AS s ON s.k IS NOT DISTINCT FROM held.k AND held.v > 1",
]
OF_DICTIONARIES = [
    "SELECT * FROM held WHERE k IN (SELECT id FROM goods WHERE w > 1)",
    "SELECT * FROM held WHERE k IS NOT NULL AND k NOT IN (SELECT id FROM goods WHERE w > 1)",
    "SELECT * FROM held WHERE id NOT IN (SELECT id FROM goods)",
    "SELECT * FROM held WHERE v NOT IN (SELECT w FROM goods AS g WHERE g.id = held.k)",
    "SELECT * FROM held WHERE NOT EXISTS (SELECT 1 FROM goods AS g WHERE g.id = held.k AND (g.w > held.v OR g.k = 1))",
    "SELECT id, EXISTS (SELECT 1 FROM goods AS g WHERE g.id = held.k) AS there, v FROM held",
    "SELECT id, coalesce(v IN (SELECT w FROM goods AS g WHERE g.id = held.id), k = 1) AS among FROM held",
    "SELECT id, (SELECT coalesce(w, 9) FROM goods AS g WHERE g.id = held.k) AS most FROM held",
    "SELECT k, count(*) FILTER (WHERE k IN (SELECT id FROM goods)) AS n FROM held GROUP BY k",
    "SELECT held.id, held.k FROM held LEFT SEMI JOIN goods AS g ON g.id = held.k AND g.w > held.v",
    "SELECT held.id, held.k FROM held LEFT ANTI JOIN goods AS g ON g.id = held.k",
]


@pytest.mark.parametrize("query", [query.format(t="seen") for query in OF_TABLES] + [OF_TABLES[1].format(t="marks")])
def test_what_is_read_once_is_asked_as_a_table_is(query: str) -> None:
    world, others = World.of(*TABLES), Changing.of(f"before {query}")
    del others.present["held"]
    for _ in range(2):
        others.change(world)
    assert_adds_up(world, query, query)


@pytest.mark.parametrize("query", OF_DICTIONARIES)
def test_what_is_looked_up_is_asked_as_a_table_is(query: str) -> None:
    world = World.of(*TABLES, GOODS, "CREATE TABLE same (id INT, k INT, w DOUBLE, PRIMARY KEY (id))")
    world.engine.source("goods", ROWS, [])
    world.insert("same", *ROWS)
    assert_adds_up(world, query, query.replace("goods", "same"))


def assert_adds_up(world: World, query: str, batch: str) -> None:
    """Over left rows that change, and others that do not."""
    held = Changing.of(query)
    held.present = {"held": []}
    world.start(query)
    for _ in range(4):
        held.change(world)
        world.drain()
        assert min(world.net.values(), default=0) >= 0
        assert world.table() == world.over_content(batch)


STREAMS = (
    "CREATE STREAM seen (n int, dev nullable(int))",
    "CREATE MUTABLE STREAM known (dev int, level int) PRIMARY KEY dev",
    GOODS,
)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT n FROM seen LEFT ANTI JOIN table(known) AS k ON seen.dev = k.dev", [2]),
        ("SELECT n FROM seen WHERE NOT EXISTS (SELECT 1 FROM table(known) AS k WHERE seen.dev = k.dev)", [2, 3]),
        ("SELECT n FROM seen WHERE dev NOT IN (SELECT dev FROM table(known))", [2]),
        ("SELECT n FROM seen LEFT SEMI JOIN table(known) AS k ON seen.dev = k.dev", [1]),
        ("SELECT n FROM seen LEFT ANTI JOIN goods ON seen.dev = goods.id", [2]),
        ("SELECT n FROM seen WHERE NOT EXISTS (SELECT 1 FROM goods WHERE id = dev)", [2, 3]),
        ("SELECT n FROM seen LEFT SEMI JOIN goods ON seen.dev = goods.id", [1]),
        ("SELECT n FROM seen LEFT ANTI JOIN known FOR SYSTEM_TIME AS OF PROCTIME() AS k ON seen.dev = k.dev", [2]),
        (
            (
                "SELECT n FROM seen WHERE NOT EXISTS (SELECT 1 FROM known FOR SYSTEM_TIME AS OF PROCTIME() AS k "
                "WHERE k.dev = seen.dev AND k.level > n)"
            ),
            [2, 3],
        ),
    ],
)
def test_a_row_of_a_stream_without_a_key_is_dropped_by_anti_alone(query: str, expected: Sequence[int]) -> None:
    world = World.of(*STREAMS)
    world.insert("known", {"dev": 1, "level": 5})
    world.engine.source("goods", ROWS[:1], [])
    world.start(query)
    world.insert("seen", {"n": 1, "dev": 1}, {"n": 2, "dev": 7}, {"n": 3, "dev": None})
    world.drain()
    assert [(n,) for n in expected] == sorted(world.table())
