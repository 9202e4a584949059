"""EMIT ON WINDOW CLOSE: each row once, when it is final."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import Unsupported
from dovetail.sql.plan.joins import Range
from dovetail.sql.plan.nodes import Join, Scan, Waiting, Window
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
    "CREATE TABLE kept (k INT, ts TIMESTAMP, PRIMARY KEY (k))",
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
        ("SELECT k FROM l", "this query has none"),
        ("SELECT k, count(*) OVER (PARTITION BY k) AS n FROM a", "their ORDER BY follows no watermark"),
        ("SELECT row_number() OVER (PARTITION BY k ORDER BY ts DESC) AS n FROM a", "follows no watermark"),
        ("SELECT row_number() OVER (PARTITION BY k ORDER BY tz) AS n FROM a", "follows no watermark"),
        ("SELECT row_number() OVER (ORDER BY ts) AS n, rank() OVER (ORDER BY tz) AS r FROM a", "follows no watermark"),
        ("SELECT row_number() OVER (ORDER BY t) AS n FROM l", "follows no watermark"),
        ("SELECT ntile(2) OVER (ORDER BY ts) AS n FROM a", "ntile() depends on all rows that follow"),
        ("SELECT lead(k, 1 + 1) OVER (ORDER BY ts) AS n FROM a", "lead() depends on all rows that follow"),
        (
            "SELECT max(k) OVER (ORDER BY ts ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS n FROM a",
            "max() depends on all rows that follow",
        ),
        (f"SELECT row_number() OVER (ORDER BY a.ts) AS n FROM a JOIN b ON {NEAR}", "but of a join or of groups"),
        ("SELECT row_number() OVER (ORDER BY ts) AS n FROM kept", "rows can be taken back"),
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


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k FROM a WHERE k > 1",
        "SELECT k, row_number() OVER (PARTITION BY k ORDER BY ts) AS n FROM a",
        "SELECT k, lead(k, 2) OVER (PARTITION BY k ORDER BY ts) AS n FROM a",
        (
            "SELECT n FROM (SELECT rank() OVER (PARTITION BY window_start ORDER BY k) AS n FROM TUMBLE(a, ts, 1m)) "
            "WHERE n < 3"
        ),
        "SELECT k FROM GAP_FILL(a, ts, INTERVAL '1' MINUTE, PARTITION_BY(k))",
    ],
)
def test_rows_wait_for_their_watermark(world: World, query: str) -> None:
    made = world.plan(f"{query} EMIT ON WINDOW CLOSE").output
    assert made is not None
    assert not made.updating
    assert [type(node) for node in walk(made)][-2:] in ([Waiting, Scan], [Window, Scan])
    (waiting,) = (node for node in walk(made) if isinstance(node, Waiting))
    assert "every row once, when" in waiting.line


def test_rows_of_a_stream_wait_as_long_as_they_are_told_to(world: World) -> None:
    query = "SELECT k, row_number() OVER (PARTITION BY k ORDER BY t) AS n FROM l EMIT AFTER WINDOW CLOSE WITH DELAY 5s"
    (scan,) = world.plan(query).dataflow.scans
    assert scan.watermark is not None
    assert scan.watermark.delay_ms == 5_000


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
