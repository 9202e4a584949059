"""Operators that several read, run in memory: what they emit is what as many operators emit, and adds up."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.sql.planner import Plan
from tests.conformance.memory import MemoryHost
from tests.conformance.sql_engine import SqlEngine
from tests.sql.compile.changing import TABLES, assert_adds_up, assert_alike
from tests.sql.compile.test_self_joins_run import rows_held
from tests.sql.world import Row, World
from tests.tries import tries

APART = {"share_state": False}
PAIRS = "WITH c AS (SELECT a.id AS id, b.k AS k, a.v AS n FROM held AS a LEFT JOIN seen AS b ON a.k = b.id)"
MATCHING = "SELECT 1 FROM held AS b WHERE b.k = a.k AND b.v > 1"
QUERIES = [
    "SELECT a.id, b.v FROM held AS a JOIN seen AS s ON a.k = s.id JOIN held AS b ON s.k = b.k WHERE b.v > 0",
    f"SELECT a.id, a.k FROM held AS a WHERE EXISTS ({MATCHING}) AND NOT EXISTS ({MATCHING} AND b.v < a.v)",
    f"{PAIRS} SELECT c.id, d.k, d.n FROM c JOIN c AS d ON c.k = d.id",
    f"{PAIRS} SELECT id, k FROM c UNION ALL SELECT k, id FROM c WHERE n > 0",
    f"{PAIRS} SELECT id, n FROM c WHERE n = (SELECT max(n) FROM c)",
    f"{PAIRS} SELECT k, count(*) AS n FROM c GROUP BY k UNION ALL SELECT k, sum(id) FROM c GROUP BY k",
]

ROWS = st.sampled_from(
    [
        "SELECT id, k, v AS n FROM held",
        "SELECT id, k, v AS n FROM held WHERE v > 0",
        "SELECT id, k + 1 AS k, w AS n FROM seen WHERE w > 1",
        "SELECT max(id) AS id, k, count(*) AS n FROM held GROUP BY k",
        "SELECT k AS id, count(*) AS k, sum(w) AS n FROM marks GROUP BY k",
        "SELECT a.id AS id, b.k AS k, w AS n FROM held AS a JOIN seen AS b ON a.k = b.k",
        "SELECT a.id AS id, b.k AS k, v AS n FROM held AS a LEFT JOIN marks AS b ON a.k = b.k AND w < v",
        "SELECT a.id AS id, b.id AS k, b.v AS n FROM held AS a JOIN held AS b ON a.k = b.k AND a.id < b.id",
    ]
)
JOINED = st.tuples(
    st.sampled_from(["c", "d"]),
    st.sampled_from(
        [
            "JOIN {} AS y ON x.k = y.id",
            "LEFT JOIN {} AS y ON x.id = y.k",
            "FULL JOIN {} AS y ON x.id = y.id AND x.n < y.n",
            "JOIN {} AS y ON x.k = y.k AND x.id = y.id",
        ]
    ),
).map(lambda drawn: drawn[1].format(drawn[0]))
QUERIED = st.tuples(
    st.sampled_from(["c", "d"]),
    st.sampled_from(
        [
            "",
            "WHERE EXISTS (SELECT 1 FROM {} AS z WHERE z.k = x.id AND z.n > 0)",
            "WHERE NOT EXISTS (SELECT 1 FROM {} AS z WHERE z.id = x.k AND z.k <> x.id)",
            "WHERE x.n = (SELECT max(n) FROM {})",
            "WHERE x.k IN (SELECT id FROM {})",
        ]
    ),
).map(lambda drawn: drawn[1].format(drawn[0]))
PARTS = st.builds("SELECT x.id AS one, y.n AS other, x.k AS by FROM c AS x {} {}".format, JOINED, QUERIED)
RANDOM = st.builds(
    lambda first, second, parts: f"WITH c AS ({first}), d AS ({second}) {' UNION ALL '.join(parts)}",
    ROWS,
    ROWS,
    st.lists(PARTS, min_size=1, max_size=2),
)


def is_shared(plan: Plan) -> bool:
    return any(fragment.output.shares for fragment in plan.fragments)


@pytest.mark.parametrize("query", QUERIES)
def test_they_add_up_to_the_batch_result(query: str) -> None:
    assert is_shared(World.of(*TABLES).plan(query))
    assert_adds_up(query, rounds=5)


@settings(max_examples=tries(20))
@given(query=RANDOM, seed=st.integers(0, 1000), limit=st.sampled_from([1, 2, 5, None]))
def test_random_plans_change_after_every_batch_what_they_change_apart(query: str, seed: int, limit: int | None) -> None:
    assert_alike(query, seed, limit, 3, **APART)


@settings(max_examples=tries(10))
@given(query=st.sampled_from(QUERIES), seed=st.integers(0, 1000), limit=st.sampled_from([1, 2, 5, None]))
def test_so_do_those_that_are_known_to_share(query: str, seed: int, limit: int | None) -> None:
    assert_alike(query, seed, limit, 3, **APART)


TIMED = "CREATE TABLE p (k INT, at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '4 seconds') APPEND ONLY"
COUNTS = (
    "WITH c AS (SELECT k, window_start, count(*) AS n FROM HOP(p, at, INTERVAL '2' SECOND, INTERVAL '4' SECOND)"
    " GROUP BY k, window_start)"
)
MOST = "SELECT window_start, max(n) AS most FROM c GROUP BY window_start"
OF_WINDOWS = [
    f"{COUNTS} SELECT a.k, a.n, b.k AS other FROM c AS a JOIN c AS b ON a.window_start = b.window_start AND a.n = b.k",
    f"{COUNTS} SELECT a.k, a.n FROM c AS a JOIN ({MOST}) AS m ON a.window_start = m.window_start AND a.n = m.most",
]


@settings(max_examples=tries(15))
@given(
    query=st.sampled_from([*OF_WINDOWS, f"{OF_WINDOWS[0]} EMIT ON WINDOW CLOSE"]),
    batches=st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 30)), max_size=6), max_size=6),
)
def test_windows_that_are_read_twice_let_go_what_they_let_go_apart(
    query: str, batches: list[list[tuple[int, int]]]
) -> None:
    """Rows that are late are so for both readers."""
    worlds = [World(SqlEngine(MemoryHost(2, rescaled=(3, 2)))) for _ in range(2)]
    for world, chosen in zip(worlds, ({}, APART), strict=True):
        world.engine.create(TIMED)
        assert is_shared(world.plan(query, **chosen)) == (chosen == {})
        world.start(query, **chosen)
    for batch in batches:
        rows: list[Row] = [{"k": k, "at": f"2026-01-01 00:00:{at:02}"} for k, at in batch]
        for world in worlds:
            world.insert("p", *rows)
            world.drain()
        assert worlds[0].table() == worlds[1].table()


THREE_TIMES = "SELECT a.id FROM orders AS a JOIN orders AS b USING (customer) JOIN orders AS c USING (customer)"
COUNTED = "WITH n AS (SELECT customer, count() AS n FROM orders GROUP BY customer)"


@pytest.mark.parametrize(
    ("query", "once", "apart"),
    [
        # By the primary key, and by the key of each side.
        ("SELECT a.id, b.customer FROM orders AS a JOIN orders AS b ON a.customer = b.amount", 9_000, 12_000),
        # By the primary key, with their groups, and by the key of each side.
        (f"{COUNTED} SELECT a.n FROM n AS a JOIN n AS b ON a.customer = b.n", 12_000, 18_000),
        # Sides of one n-way join by one key are one of themselves.
        (THREE_TIMES, 6_000, 18_000),
    ],
)
def test_the_rows_of_several_readers_are_held_once(query: str, once: int, apart: int) -> None:
    """The figures of docs/state.md."""
    assert (rows_held(query, 3_000), rows_held(query, 3_000, **APART)) == (once, apart)
