"""PARTITION BY of a query, lag() and lags() without OVER, dedup() and changelog() in FROM: as Timeplus writes them."""

from __future__ import annotations

import pytest

from dovetail.changelog.errors import SqlError, UnknownName
from tests.sql.world import World

BOUNDS = "window_start, window_end"
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
        ("SELECT k, v FROM dedup(s, k)", "SELECT k, v FROM (SELECT * FROM s LIMIT 1 BY k) AS s"),
        ("SELECT d.v FROM dedup(s, k, upper(c)) AS d", "SELECT d.v FROM (SELECT * FROM s LIMIT 1 BY k, upper(c)) AS d"),
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
        ("SELECT k, latest(lag(v)) AS l FROM s GROUP BY k", "no order of arrival"),
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
