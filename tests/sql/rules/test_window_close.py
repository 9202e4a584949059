"""EMIT ON WINDOW CLOSE: each row once, when it is final."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import Unsupported
from dovetail.sql.plan.joins import Range
from dovetail.sql.plan.nodes import Join
from dovetail.sql.plan.properties import walk
from dovetail.sql.planner import recompute
from tests.sql.world import World, select

DDL = (
    "CREATE STREAM l (k int, t datetime64(3))",
    "CREATE STREAM r (k int, t datetime64(3))",
    "CREATE TABLE a (k INT, ts TIMESTAMP, tz TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5 seconds') APPEND ONLY",
    "CREATE TABLE b (k INT, ts TIMESTAMP, tz TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5 seconds') APPEND ONLY",
    "CREATE MATERIALIZED VIEW near AS SELECT a.k AS k, a.ts AS at FROM a JOIN b ON a.k = b.k AND a.ts >= b.ts",
    "CREATE MATERIALIZED VIEW again AS SELECT k, at FROM near WHERE k > 1",
    (
        "CREATE MATERIALIZED VIEW streams AS SELECT l.k AS k FROM l JOIN r ON l.k = r.k AND l.t > r.t "
        "SETTINGS watermark_delay = '7s', output_format = 'changelog'"
    ),
    "CREATE MATERIALIZED VIEW plain AS SELECT k, ts FROM a",
)
NEAR = "a.k = b.k AND a.ts BETWEEN b.ts AND b.ts + INTERVAL '1' MINUTE"


@pytest.fixture(scope="module")
def world() -> World:
    return World.of(*DDL)


@pytest.mark.parametrize("emit", ["EMIT ON WINDOW CLOSE", "EMIT AFTER WINDOW CLOSE"])
@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN", "FULL JOIN", "LEFT ANTI JOIN", "LEFT SEMI JOIN"])
def test_the_uppermost_join_is_closed(world: World, kind: str, emit: str) -> None:
    made = world.plan(f"SELECT a.k FROM a {kind} b ON {NEAR} {emit}").output
    assert made is not None
    join = next(node for node in walk(made) if isinstance(node, Join))
    assert isinstance(join.method, Range)
    assert join.method.closed
    assert not made.updating
    assert "every row once, when its window is closed" in join.line


def test_a_view_that_is_read_alone_is_read_as_its_query(world: World) -> None:
    for view in ("near", "again"):
        plan = world.plan(f"SELECT k, at FROM {view} EMIT ON WINDOW CLOSE")
        assert plan.reads == ("a", "b")
        assert plan.columns == ("k", "at")
    assert world.plan("SELECT k, at FROM near").reads == ("near",)


def test_the_settings_of_the_view_are_those_of_its_rows(world: World) -> None:
    plan = world.plan("SELECT k FROM streams EMIT ON WINDOW CLOSE")
    assert [scan.watermark.delay_ms for scan in plan.dataflow.scans if scan.watermark is not None] == [7_000, 7_000]
    assert "output_format" not in plan.settings.values


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT k FROM a", "this query has none"),
        ("SELECT k FROM plain", "this query has none"),
        ("SELECT l.k FROM l JOIN r ON l.k = r.k", "this query has none"),
        (f"SELECT a.k FROM a JOIN b ON {NEAR} JOIN l ON a.k = l.k", "this query has none"),
        (
            "SELECT a.k FROM a JOIN b ON a.k = b.k AND a.tz BETWEEN b.tz AND b.tz + 1d",
            "no watermark over a.tz",
        ),
        ("SELECT a.k FROM a RIGHT JOIN b ON a.k = b.k AND a.ts >= b.ts", "no upper bound"),
    ],
)
def test_what_never_closes_is_refused(world: World, query: str, message: str) -> None:
    with pytest.raises(Unsupported) as refused:
        world.plan(f"{query} EMIT ON WINDOW CLOSE")
    assert message in refused.value.what
    assert refused.value.where == "EMIT"
    assert refused.value.fix


def test_a_delay_is_added_to_the_watermarks_that_tables_state(world: World) -> None:
    def delays(emit: str) -> list[int]:
        scans = world.plan(f"SELECT a.k FROM a JOIN b ON {NEAR} {emit}").dataflow.scans
        return [scan.watermark.delay_ms for scan in scans if scan.watermark is not None]

    stated = delays("EMIT ON WINDOW CLOSE")
    assert len(stated) == 2
    assert delays("EMIT AFTER WINDOW CLOSE WITH DELAY 2s") == [delay + 2_000 for delay in stated]
    assert delays("EMIT AFTER WATERMARK AND DELAY 2s") == [delay + 2_000 for delay in stated]


@pytest.mark.parametrize(("settings", "delay"), [("", 2_000), ("SETTINGS watermark_delay = '3s'", 5_000)])
def test_a_delay_is_the_watermark_of_a_stream_without_one(settings: str, delay: int) -> None:
    world = World.of("CREATE STREAM s (k int, at datetime64(3))")
    query = "SELECT window_start, count() AS n FROM tumble(s, at, 1m) GROUP BY window_start"
    (scan,) = world.plan(f"{query} EMIT AFTER WINDOW CLOSE WITH DELAY 2s {settings}").dataflow.scans
    assert scan.watermark is not None
    assert scan.watermark.delay_ms == delay


def test_the_batch_that_a_view_is_compared_with_reads_what_the_view_reads(world: World) -> None:
    statement = select("SELECT k, at FROM again EMIT ON WINDOW CLOSE")
    assert sorted(recompute("q", statement, world.engine.catalog).relations) == ["a", "b"]
