"""Bounded queries over ``table(x)``."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import SqlError, UnknownName
from tests.sql.world import World

DDL = (
    "CREATE STREAM flow (i int, k string)",
    "CREATE MUTABLE STREAM dim (k string, v int) PRIMARY KEY k",
    "CREATE TABLE plain (k VARCHAR, w INT)",
)


@pytest.fixture
def world() -> World:
    world = World.of(*DDL)
    world.insert("flow", {"i": 1, "k": "a"}, {"i": 2, "k": "b"}, {"i": 3, "k": "a"})
    world.insert("dim", {"k": "a", "v": 10}, {"k": "b", "v": 20}, {"k": "a", "v": 11})
    world.insert("plain", {"k": "a", "w": 5})
    return world


def answer(world: World, query: str) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in world.engine.snapshot(query)]


def test_a_table_is_its_content_now(world: World) -> None:
    assert sorted(answer(world, "SELECT k, v FROM table(dim)")) == [("a", 11), ("b", 20)]


def test_aggregates_order_and_limit_are_allowed(world: World) -> None:
    query = (
        "SELECT f.k, count(), sum(i) AS total FROM table(flow) AS f JOIN table(dim) AS d ON f.k = d.k "
        "GROUP BY f.k ORDER BY total DESC LIMIT 1"
    )
    assert world.plan(query).columns == ("k", "count()", "total")
    assert answer(world, query) == [("a", 2, 4)]


def test_names_follow_the_rules_of_streaming_queries(world: World) -> None:
    star = "SELECT * FROM table(flow) AS f JOIN table(dim) AS d ON f.k = d.k"
    assert world.plan(star).columns == ("i", "k", "_tp_time", "d.k", "v", "d._tp_time")
    assert world.plan("SELECT * except(k) FROM table(plain)").columns == ("w",)
    assert world.plan("SELECT k, i + 1, _tp_delta FROM table(flow)").columns == ("k", "i + 1")


def test_natural_joins_leave_the_time_out(world: World) -> None:
    assert answer(world, "SELECT i, v FROM table(flow) NATURAL JOIN table(dim) WHERE i > 2") == [(3, 11)]


def test_subqueries_ctes_and_unions(world: World) -> None:
    query = (
        "WITH big AS (SELECT k, v FROM table(dim) WHERE v > (SELECT min(v) FROM table(dim))) "
        "SELECT k FROM big UNION ALL SELECT k FROM table(plain)"
    )
    assert sorted(answer(world, query)) == [("a",), ("b",)]


def test_asof_and_ranges_mean_the_same_as_in_streams() -> None:
    world = World.of("CREATE STREAM l (k int, t int)", "CREATE STREAM r (k int, t int)")
    world.insert("l", {"k": 1, "t": 10})
    world.insert("r", {"k": 1, "t": 7}, {"k": 1, "t": 9}, {"k": 1, "t": 11})
    query = "SELECT r.t FROM table(l) AS l ASOF JOIN table(r) AS r ON l.k = r.k AND l.t >= r.t"
    assert answer(world, query) == [(9,)]


def test_a_changelog_function_keeps_the_last_row_of_each_key(world: World) -> None:
    assert sorted(world.recomputed("SELECT i, k FROM changelog(flow, k)")) == [(2, "b"), (3, "a")]


def test_unknown_names_are_told_with_the_nearest(world: World) -> None:
    with pytest.raises(UnknownName, match="nope"):
        world.plan("SELECT * FROM table(nope)")
    with pytest.raises(UnknownName, match='no column "vv"') as unknown:
        world.plan("SELECT vv FROM table(dim)")
    assert unknown.value.where == "line 1, column 8, in SELECT\n    SELECT vv FROM table(dim)\n           ^"
    assert unknown.value.fix == 'did you mean "v"?'
    with pytest.raises(UnknownName, match='no column "vv"'):
        world.plan("SELECT vv + 1 FROM table(dim)")
    with pytest.raises(SqlError, match="GROUP BY") as ungrouped:
        world.plan("SELECT k, count() FROM table(dim)")
    assert ungrouped.value.where.startswith("line 1, column 8")
    assert ungrouped.value.fix == "GROUP BY k, or an aggregate of it: max(k)"


def test_windows() -> None:
    world = World.of("CREATE TABLE t (k INT, at TIMESTAMP)", "CREATE STREAM s (k int)")
    world.insert(
        "t", {"k": 1, "at": "2024-01-01 00:00:12"}, {"k": 2, "at": "1969-12-31 23:59:57"}, {"k": 3, "at": None}
    )
    world.insert("s", {"k": 4, "_tp_time": "2024-01-01 00:00:12.500"})
    tumbled = "SELECT k, window_start, window_end FROM tumble(table(t), at, 10s)"
    assert sorted(answer(world, tumbled)) == [
        (1, "2024-01-01 00:00:10.000000", "2024-01-01 00:00:20.000000"),
        (2, "1969-12-31 23:59:50.000000", "1970-01-01 00:00:00.000000"),
    ]
    assert world.plan("SELECT * FROM tumble(table(s), 10s)").columns == ("k", "_tp_time", "window_start", "window_end")
    hopped = "SELECT window_start, count() FROM hop(table(s), 4s, 10s) GROUP BY window_start ORDER BY window_start"
    assert answer(world, hopped) == [(f"2024-01-01 00:00:{second}.000", 1) for second in ("04", "08", "12")]


def test_a_stream_joined_with_the_windows_of_a_table() -> None:
    world = World.of("CREATE TABLE t (k INT, at TIMESTAMP)", "CREATE STREAM s (k int)")
    world.insert("t", {"k": 1, "at": "2024-01-01 00:00:12"})
    world.start("SELECT s.k, window_start FROM s JOIN TUMBLE(table(t), at, INTERVAL '10' SECOND) AS w ON s.k = w.k")
    world.insert("s", {"k": 1}, {"k": 2})
    world.drain()
    assert world.table() == {(1, "2024-01-01 00:00:10.000000"): 1}


@pytest.mark.parametrize("columns", ["x.n, y.n", "x.n, y.n + 1 - 1", "a, b"])
def test_whole_numbers_within_a_distance(columns: str) -> None:
    world = World.of("CREATE STREAM x (k int, n int, a int)", "CREATE STREAM y (k int, n int, b int)")
    world.insert("x", {"k": 1, "n": 1, "a": 1}, {"k": 1, "n": 5, "a": 5})
    world.insert("y", {"k": 1, "n": 3, "b": 3}, {"k": 1, "n": 8, "b": 8})
    query = (
        f"SELECT x.n, y.n AS m FROM table(x) AS x JOIN table(y) AS y ON x.k = y.k AND date_diff_within(2s, {columns})"
    )
    assert sorted(answer(world, query)) == [(1, 3), (5, 3)]


def test_a_call_that_fails_for_a_row_is_null_there_as_in_a_stream(world: World) -> None:
    assert set(answer(world, "SELECT to_int(k) AS n, coalesce(to_int(k), 0) AS m FROM table(dim)")) == {(None, 0)}


def test_a_bounded_plan_has_no_dataflow(world: World) -> None:
    plan = world.plan("SELECT k FROM table(dim)")
    assert plan.bounded
    assert plan.reads == ("dim",)
    assert plan.explain() == "Snapshot q  engine=duckdb  columns=k\n└─ table(dim)  read once"
    with pytest.raises(SqlError, match="nothing to run"):
        _ = plan.dataflow


@pytest.mark.parametrize("text", ["infinity", "-infinity", "290000-01-01", "0044-03-15 (BC)"])
@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP", "TIMESTAMPTZ"])
def test_a_time_that_no_row_can_hold_is_null(world: World, text: str, kind: str) -> None:
    world.insert("plain", {"k": text, "w": 6})
    assert answer(world, f"SELECT k::{kind} AS at FROM table(plain) WHERE w = 6") == [(None,)]


CLAUSES = {
    # Window functions are of the rows before QUALIFY, and those before LIMIT.
    "SELECT i, sum(i) OVER () AS s FROM table(flow) QUALIFY row_number() OVER (ORDER BY i) = 2": [(2, 6)],
    "SELECT i, count() OVER () AS n FROM table(flow) ORDER BY i DESC LIMIT 1": [(3, 3)],
    # A CTE sees one of its own name that is around it, and is one however often it is read.
    "WITH c AS (SELECT 1 AS a), d AS (WITH c AS (SELECT a + 1 AS a FROM c) SELECT a FROM c) SELECT a FROM d": [(2,)],
    "WITH c AS (SELECT v FROM table(dim)) SELECT x.v FROM c AS x JOIN c AS y ON x.v = y.v WHERE y.v > 15": [(20,)],
    # What is ordered by need not be selected; NULL is of any type.
    "SELECT k FROM table(flow) ORDER BY i DESC LIMIT 2 OFFSET 1": [("b",), ("a",)],
    "(SELECT v FROM table(dim) ORDER BY v DESC LIMIT 1) UNION ALL SELECT NULL ORDER BY 1": [(20,), (None,)],
    # A subquery in GROUP BY is the one in the select list; what it reads is of the groups.
    "SELECT (SELECT max(v) FROM table(dim) AS d WHERE d.k = f.k) AS m, count() FROM table(flow) AS f GROUP BY m "
    "ORDER BY m": [(11, 2), (20, 1)],
    "SELECT upper(k) AS u, (SELECT count() FROM table(dim) AS d WHERE upper(d.k) = upper(f.k)) AS n "
    "FROM table(flow) AS f GROUP BY upper(k) ORDER BY u": [("A", 1), ("B", 1)],
    "SELECT count() AS n HAVING count() > 0": [(1,)],
    "SELECT b, a + 1 AS c FROM (SELECT 1 AS a, 'x' AS b) AS t WHERE a = 1": [("x", 2)],
}


@pytest.mark.parametrize("query", CLAUSES)
def test_clauses_mean_what_they_mean(world: World, query: str) -> None:
    assert answer(world, query) == CLAUSES[query]


@pytest.mark.parametrize(
    "query", ["SELECT DISTINCT k FROM table(flow) ORDER BY i", "SELECT k FROM table(flow) ORDER BY 2"]
)
def test_an_order_by_what_is_not_there_is_refused(world: World, query: str) -> None:
    with pytest.raises(SqlError, match="ORDER BY"):
        world.plan(query)


def test_ties_of_asof_are_told_by_arrival_in_a_subquery_too() -> None:
    world = World.of("CREATE STREAM l (k int, t int)", "CREATE STREAM r (k int, t int, v int)")
    world.insert("l", {"k": 1, "t": 10})
    world.insert("r", {"k": 1, "t": 9, "v": 3}, {"k": 1, "t": 9, "v": 1}, {"k": 1, "t": 9, "v": 2})
    right = "(SELECT k AS x, t AS y, v AS z FROM table(r))"
    query = f"SELECT z FROM table(l) AS l ASOF JOIN {right} AS r ON l.k = r.x AND l.t >= r.y"
    assert answer(world, query) == [(2,)]


def test_only_columns_that_are_named_are_read(world: World) -> None:
    plan = world.plan("SELECT x.k FROM table(flow) AS x LEFT JOIN table(dim) AS d ON x.k = d.k")
    assert plan.snapshot is not None
    assert [plan.snapshot.mentions(name) for name in ("k", "i", "v", "_tp_time")] == [True, False, False, False]
