"""Bounded queries over ``table(x)``."""

from __future__ import annotations

import pytest

from changelog.errors import SqlError, UnknownName, Unsupported
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
    assert (unknown.value.where, unknown.value.fix) == ("line 1, column 8, in SELECT", 'did you mean "v"?')
    with pytest.raises(UnknownName, match="Referenced column vv"):
        world.plan("SELECT vv + 1 FROM table(dim)")
    with pytest.raises(Unsupported, match="tumble"):
        world.recomputed("SELECT i FROM tumble(flow, 5s)")


def test_a_value_that_does_not_fit_is_an_error_of_the_user(world: World) -> None:
    with pytest.raises(SqlError, match="Conversion"):
        answer(world, "SELECT to_int(k) FROM table(dim)")


def test_a_bounded_plan_has_no_dataflow(world: World) -> None:
    plan = world.plan("SELECT k FROM table(dim)")
    assert plan.bounded
    assert plan.reads == ("dim",)
    assert plan.explain() == "Snapshot q  engine=duckdb  columns=k\n└─ table(dim)  read once"
    with pytest.raises(SqlError, match="nothing to run"):
        _ = plan.dataflow
