"""PARTITION BY of a query, lag() and lags() without OVER, dedup() and changelog() in FROM: as Timeplus writes them."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import SqlError, UnknownName
from tests.sql.world import World

BOUNDS = "window_start, window_end"
FIRST = "QUALIFY row_number() OVER (PARTITION BY {} ORDER BY _tp_sn) = 1"
NUMBER = "row_number() OVER (PARTITION BY k ORDER BY v)"
ORDER = "ORDER BY window_start"
BY_WINDOW = "PARTITION BY k ORDER BY window_start"


@pytest.fixture(scope="module")
def world() -> World:
    return World.of(
        "CREATE STREAM s (k string, c string, v int, at datetime64(3))",
        "CREATE STREAM vk (k int, v int, PRIMARY KEY k) SETTINGS mode = 'versioned_kv'",
        "CREATE STREAM log (k int, v int) SETTINGS mode = 'changelog'",
        "CREATE VIEW totals AS SELECT k, sum(v) AS t FROM s GROUP BY k",
        "CREATE TABLE t (a int PRIMARY KEY, b int)",
    )


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("SELECT max(v) AS m FROM s PARTITION BY k", "SELECT max(v) AS m FROM s GROUP BY k"),
        ("SELECT k, max(v) AS m FROM s PARTITION BY k, c", "SELECT k, max(v) AS m FROM s GROUP BY k, c"),
        ("SELECT upper(k) AS u, count() FROM s PARTITION BY u", "SELECT upper(k) AS u, count() FROM s GROUP BY u"),
        (
            "SELECT sum(v) AS t FROM tumble(s, at, 5s) WHERE v > 0 PARTITION BY k GROUP BY window_start HAVING t > 1",
            "SELECT sum(v) AS t FROM tumble(s, at, 5s) WHERE v > 0 GROUP BY window_start, k HAVING t > 1",
        ),
        (
            f"SELECT k, count() AS n FROM session(s, at, 5s) PARTITION BY k GROUP BY {BOUNDS}",
            f"SELECT k, count() AS n FROM session(s, at, 5s) GROUP BY {BOUNDS}, k",
        ),
        ("SELECT k, v FROM s PARTITION BY c", "SELECT k, v FROM s"),
        (
            "SELECT k, count() AS n FROM (SELECT k, sum(v) FROM s PARTITION BY k, c) GROUP BY k",
            "SELECT k, count() AS n FROM (SELECT k, sum(v) FROM s GROUP BY k, c) GROUP BY k",
        ),
        (
            "SELECT v, lag(v, 2, 0) AS l FROM s PARTITION BY k",
            "SELECT v, lag(v, 2, 0) OVER (PARTITION BY k ORDER BY _tp_sn) AS l FROM s",
        ),
        (
            "SELECT v - lag(v) AS l FROM (SELECT v, _tp_time FROM s)",
            "SELECT v - lag(v) OVER (ORDER BY _tp_time) AS l FROM (SELECT v, _tp_time FROM s)",
        ),
        (
            "SELECT lags(v, 2, 3, 0) AS l FROM s",
            "SELECT [lag(v, 2, 0) OVER (ORDER BY _tp_sn), lag(v, 3, 0) OVER (ORDER BY _tp_sn)] AS l FROM s",
        ),
        (
            "SELECT sum(v) AS m, lag(m) AS l FROM tumble(s, 5s) PARTITION BY k GROUP BY window_start",
            f"SELECT sum(v) AS m, lag(m) OVER ({BY_WINDOW}) AS l FROM tumble(s, 5s) GROUP BY window_start, k",
        ),
        (
            "SELECT lag(v) IGNORE NULLS AS l FROM s PARTITION BY k",
            "SELECT lag(v) IGNORE NULLS OVER (PARTITION BY k ORDER BY _tp_sn) AS l FROM s",
        ),
        (
            "SELECT v, (SELECT max(w) FROM (SELECT lag(v) AS w FROM s)) AS m FROM s",
            "SELECT v, (SELECT max(w) FROM (SELECT lag(v) OVER (ORDER BY _tp_sn) AS w FROM s)) AS m FROM s",
        ),
        ("SELECT k, v FROM dedup(s, k)", f"SELECT k, v FROM (SELECT * FROM s {FIRST.format('k')}) AS s"),
        ("SELECT s.v FROM dedup(public.s, k)", f"SELECT s.v FROM (SELECT * FROM s {FIRST.format('k')}) AS s"),
        (
            "SELECT s.v, x.v AS w FROM dedup(s, k) JOIN vk AS x ON s.v = x.k",
            f"SELECT s.v, x.v AS w FROM (SELECT * FROM s {FIRST.format('k')}) AS s JOIN vk AS x ON s.v = x.k",
        ),
        (
            "SELECT d.v FROM dedup(s, k, upper(c)) AS d",
            f"SELECT d.v FROM (SELECT * FROM s {FIRST.format('k, upper(c)')}) AS d",
        ),
        (
            "SELECT v, sum(v) OVER (ORDER BY at) AS t FROM s PARTITION BY k QUALIFY row_number() OVER (ORDER BY v) = 1",
            f"SELECT v, sum(v) OVER (PARTITION BY k ORDER BY at) AS t FROM s QUALIFY {NUMBER} = 1",
        ),
        ("SELECT sum(v) AS t FROM s PARTITION BY k GROUP BY ALL", "SELECT sum(v) AS t FROM s GROUP BY k"),
        ("SELECT v FROM s QUALIFY lag(v) > 3", "SELECT v FROM s QUALIFY lag(v) OVER (ORDER BY _tp_sn) > 3"),
        (
            "SELECT window_start AS ws, sum(v) AS m, lag(m) AS l FROM tumble(s, at, 5s) GROUP BY ws",
            f"SELECT window_start AS ws, sum(v) AS m, lag(m) OVER ({ORDER}) AS l FROM tumble(s, at, 5s) GROUP BY ws",
        ),
        ("SELECT v FROM changelog(vk)", "SELECT v FROM vk"),
        ("SELECT v FROM changelog(vk, k)", "SELECT v FROM vk"),
        ("SELECT v FROM changelog(log)", "SELECT v FROM log"),
        ("SELECT t FROM changelog(totals, k)", "SELECT t FROM totals"),
        (
            "SELECT s.v, x.v AS w FROM s JOIN changelog(table(s), k) AS x ON s.k = x.k",
            "SELECT s.v, x.v AS w FROM s JOIN (SELECT * FROM changelog(table(s), k)) AS x ON s.k = x.k",
        ),
        ("SELECT k FROM s UNION SELECT c FROM s", "SELECT k FROM s UNION ALL SELECT c FROM s"),
        (
            "SELECT sum(n) AS t FROM (SELECT count() AS n FROM s GROUP BY k EMIT CHANGELOG PERIODIC 1s)",
            "SELECT sum(n) AS t FROM (SELECT count() AS n FROM s GROUP BY k)",
        ),
        ("(SELECT count() FROM s GROUP BY k EMIT PERIODIC 3s)", "SELECT count() FROM s GROUP BY k EMIT PERIODIC 3s"),
    ],
)
def test_what_is_written_is_planned_as_what_is_meant(world: World, written: str, meant: str) -> None:
    assert world.explain(written) == world.explain(meant)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT k, v FROM s PARTITION BY nope", 'there is no column "nope"'),
        ("SELECT max(v) FROM s PARTITION BY nope", 'there is no column "nope"'),
        ("SELECT max(v) FROM s PARTITION BY k GROUP BY ROLLUP (c)", "beside several groupings"),
        ("SELECT count(*) FROM t PARTITION BY b", "PARTITION BY of a query is for streams"),
        ("SELECT lag(v) AS l FROM (SELECT v FROM s)", "no order of arrival"),
        ("SELECT k, latest(lag(v)) AS l FROM s GROUP BY k", "within an aggregate"),
        ("SELECT lags(v) AS l FROM s", "lags takes other arguments"),
        ("SELECT lags(v, 3, 1) AS l FROM s", "lags takes other arguments"),
        ("SELECT lags(v, 1, 100000) AS l FROM s", "lags takes other arguments"),
        ("SELECT v FROM dedup(s)", "dedup takes a stream"),
        ("SELECT v FROM dedup(s, k, 10s)", "dedup forgets no key"),
        ("SELECT v FROM dedup(s, nope)", 'there is no column "nope"'),
        ("SELECT v FROM changelog(vk, v)", "a changelog already"),
        ("SELECT v FROM changelog(log, k, true)", "a changelog already"),
        ("SELECT t FROM changelog(totals, t)", "a changelog already"),
        ("SELECT t FROM changelog(totals, k, true)", "no stream of versions"),
        ("SELECT v FROM changelog(s)", "needs the columns of its key"),
        ("SELECT v FROM changelog(vk, k, nope)", 'no column "nope"'),
        ("SELECT t FROM changelog(totals, k, nope)", 'no column "nope"'),
        ("SELECT s.v FROM s JOIN changelog(table(s), k, true) AS x ON s.k = x.k", "which rows of"),
        ("SELECT DISTINCT v FROM s PARTITION BY k", "beside PARTITION BY"),
        ("SELECT v FROM s PARTITION BY k LIMIT 1 BY c", "beside PARTITION BY"),
        ("SELECT v FROM s PARTITION BY 1", "not by a value"),
        ("SELECT v FROM s DISTRIBUTE BY k", "DISTRIBUTE"),
        ("SELECT s.v, lag(s.v) AS l FROM s JOIN vk ON s.v = vk.k", "no order of arrival"),
        ("SELECT k, sum(v - lag(v) OVER (ORDER BY at)) AS t FROM s GROUP BY k", "within an aggregate"),
        ("SELECT sum(lag(v)) OVER (ORDER BY at) AS t FROM s", "within an aggregate"),
        ("SELECT lag(lag(v)) AS l FROM s", "within"),
        ("SELECT lag(v) FILTER (WHERE v > 5) AS l FROM s", "FILTER is for aggregates"),
        ("SELECT lag(v) FILTER (WHERE v > 5) OVER (ORDER BY at) AS l FROM s", "FILTER is for aggregates"),
        ("SELECT v FROM dedup(s, k) SAMPLE 0.1", "SAMPLE"),
        ("SELECT count() FROM tumble(dedup(s, k), at, 5s) GROUP BY window_start", "dedup() in tumble()"),
        ("SELECT v FROM dedup(dedup(s, k), c)", "takes the name of a stream"),
        ("SELECT v, window_start FROM tumble(log, _tp_time + INTERVAL 1 DAY, 5s)", "a _tp_time of its own"),
        ("SELECT n FROM (SELECT count() AS n FROM s GROUP BY k EMIT PERIODIC 1s REPEAT)", "says when alone"),
        ("(SELECT count() FROM s GROUP BY k EMIT PERIODIC 1s) EMIT PERIODIC 2s", "one EMIT"),
        (
            "SELECT sum(n) FROM (SELECT count() AS n FROM tumble(s, 5s) GROUP BY window_start EMIT AFTER WINDOW CLOSE)",
            "says when alone",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_way_on(world: World, query: str, message: str) -> None:
    with pytest.raises((SqlError, UnknownName)) as refused:
        world.plan(query)
    assert message in refused.value.what
    assert refused.value.fix


def test_of_each_key_the_row_that_came_first_stays(world: World) -> None:
    running = World.of("CREATE STREAM s (k string, v int)")
    running.start("SELECT k, v FROM dedup(s, k)")
    for value in (9, 1, 5):
        running.insert("s", {"k": "a", "v": value})
    assert [(row["v"], delta) for row, delta in running.drain()] == [(9, 1)]


def test_versions_go_before_arrival_where_rows_are_computed_again() -> None:
    world = World.of("CREATE STREAM s (k string, v int, at datetime64(3)) SETTINGS event_time_column = 'at'")
    query = "SELECT k, v FROM changelog(s, k, true)"
    world.start(query)
    world.insert("s", {"k": "a", "v": 9, "at": "2026-01-01 00:00:09"}, {"k": "a", "v": 1, "at": "2026-01-01 00:00:00"})
    world.drain()
    assert world.table() == world.recomputed(query) == {("a", 9): 1}


def test_the_emit_of_brackets_is_that_of_the_query_they_stand_around(world: World) -> None:
    inner = "SELECT k, count() AS n FROM s GROUP BY k"
    assert world.explain(f"(({inner} EMIT PERIODIC 3s))") == world.explain(f"{inner} EMIT PERIODIC 3s")
    union = f"(SELECT k, v AS n FROM s) UNION ALL ({inner} EMIT PERIODIC 5s)"
    assert world.explain(union) == world.explain(union.replace(" EMIT PERIODIC 5s", ""))
    table = "SELECT a, n FROM (SELECT a, count(*) AS n FROM t GROUP BY a EMIT CHANGES) AS x"
    assert world.explain(table) == world.explain(table.replace(" EMIT CHANGES", ""))


def test_rows_that_are_late_do_not_replace_newer_ones(world: World) -> None:
    assert world.plan("SELECT v FROM changelog(vk, true)").dataflow.scans[0].stream.version == "_tp_time"
    assert world.plan("SELECT v FROM changelog(s, k, true)").dataflow.scans[0].stream.version == "_tp_time"
    assert world.plan("SELECT v FROM changelog(s, k, false)").dataflow.scans[0].stream.version == ""


@pytest.mark.parametrize("window", ["tumble(s, {}, 5s)", "hop(s, {}, 1s, 5s)", "session(s, {}, 5s)"])
def test_windows_are_of_a_computed_time(world: World, window: str) -> None:
    query = "SELECT count() AS n, window_start FROM {} GROUP BY window_start"
    computed = world.plan(query.format(window.format("at + INTERVAL 1 DAY")))
    named = "(SELECT *, at + INTERVAL 1 DAY AS later FROM s)"
    meant = world.plan(f"WITH x AS {named} {query.format(window.replace('(s', '(x').format('later'))}")
    assert computed.columns == meant.columns
    assert computed.dataflow.levels == meant.dataflow.levels


def test_a_computed_time_is_no_column_of_the_rows(world: World) -> None:
    rows = world.plan("SELECT * FROM tumble(s, at + INTERVAL 1 DAY, 5s)")
    assert rows.columns == ("k", "c", "v", "at", "_tp_time", "window_start", "window_end")
