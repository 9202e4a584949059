"""Which columns of a view's topic have a watermark that its query tells."""

from __future__ import annotations

import pytest

from dovetail.sql.planner import Plan, plan_query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateView
from tests.sql.planner import Planner

DDL = (
    "CREATE TABLE a (k INT, at TIMESTAMPTZ, WATERMARK FOR at AS at - INTERVAL '5 SECONDS') APPEND ONLY",
    "CREATE TABLE b (k INT, at TIMESTAMPTZ, WATERMARK FOR at AS at - INTERVAL '2 SECONDS') APPEND ONLY",
    "CREATE TABLE bare (k INT, at TIMESTAMPTZ) APPEND ONLY",
    "CREATE TABLE taken (opened TIMESTAMPTZ, n BIGINT) APPEND ONLY",
    "CREATE STREAM s (k int, at datetime64(3))",
)
TENS = "FROM TUMBLE(a, at, INTERVAL '10 SECONDS') GROUP BY window_start, window_end, k"
CLOSED = "EMIT ON WINDOW CLOSE"
NEAR = "a.k = b.k AND a.at BETWEEN b.at - INTERVAL '1 SECOND' AND b.at + INTERVAL '3 SECONDS'"
WATERMARKED = {
    f"SELECT window_start AS opened, window_end AS closed, k, count(*) AS n {TENS} {CLOSED}": {
        "opened": 0,
        "closed": 10,
    },
    f"SELECT window_end AS closed, window_end + INTERVAL '1 HOUR' AS due, k {TENS} {CLOSED}": {
        "closed": 10,
        "due": 3610,
    },
    "SELECT at AS moment, count(*) AS n FROM a GROUP BY at EMIT ON WINDOW CLOSE": {"moment": 0},
    "SELECT window_end AS until, k, count(*) AS n FROM SESSION(a, at, INTERVAL '5 SECONDS') "
    f"GROUP BY window_start, window_end, k {CLOSED}": {"until": 0},
    f"SELECT a.k AS k, a.at AS first, b.at AS second FROM a JOIN b ON {NEAR}": {"first": 0},
    f"SELECT a.k AS k, b.at AS second FROM a JOIN b ON {NEAR}": {"second": 0},
    f"SELECT b.at AS second, a.at AS first FROM a LEFT JOIN b ON {NEAR} SETTINGS output = 'append'": {"first": 0},
    "SELECT window_start AS opened, count(*) AS n FROM tumble(s, at, 10s) GROUP BY window_start "
    "EMIT AFTER WINDOW CLOSE": {"opened": 0},
}
NONE = {
    "rows that are taken back": f"SELECT window_start AS opened, k, count(*) AS n {TENS}",
    "no time selected": f"SELECT k, count(*) AS n {TENS} {CLOSED}",
    "no operator": "SELECT k, at FROM a",
    "no watermark": "SELECT bare.k AS k, a.at AS at FROM a JOIN bare ON a.k = bare.k",
    "both may be padded": f"SELECT a.at AS first, b.at AS second FROM a FULL JOIN b ON {NEAR} SETTINGS output='append'",
    "marked": f"SELECT window_start AS opened, k, count(*) AS n {TENS} EMIT CHANGELOG",
}


def view(text: str, into: str = "") -> Plan:
    planner = Planner.of(*DDL)
    statement = parse_one(f"CREATE MATERIALIZED VIEW v {into} AS {text}")
    assert isinstance(statement, CreateView)
    return plan_query("v", statement, planner.catalog)


@pytest.mark.parametrize(("text", "columns"), WATERMARKED.items())
def test_columns_that_follow_the_time_of_rows_that_stay(text: str, columns: dict[str, int]) -> None:
    plan = view(text)
    upstream = plan.stream().upstream_watermarks
    base = upstream[0].delay_ms
    assert {one.column: (base - one.delay_ms) // 1000 for one in upstream} == {
        name: later - next(iter(columns.values())) for name, later in columns.items()
    }
    assert all(one.from_heartbeats and one.max_future_ms is None for one in upstream)
    assert len(plan.dataflow.sink.clock) == len(plan.dataflow.nodes[-1].operator.ports)
    assert f"tells the watermark of {','.join(columns)}" in plan.explain()


@pytest.mark.parametrize(
    ("text", "grid"),
    [
        (f"SELECT window_start AS opened, k {TENS} {CLOSED}", (10_000, 0)),
        (
            (
                "SELECT window_end AS closed FROM HOP(a, at, INTERVAL '4 SECONDS', INTERVAL '10 SECONDS') "
                f"GROUP BY window_end {CLOSED}"
            ),
            (4_000, 2_000),
        ),
        ("SELECT at AS moment, count(*) AS n FROM a GROUP BY at EMIT ON WINDOW CLOSE", (1, 0)),
        (f"SELECT a.k AS k, a.at AS first FROM a JOIN b ON {NEAR}", (1, 0)),
    ],
)
def test_windows_tell_it_from_one_to_the_next(text: str, grid: tuple[int, int]) -> None:
    assert view(text).dataflow.sink.grid == grid


@pytest.mark.parametrize("text", NONE.values(), ids=NONE)
def test_no_watermark_is_told(text: str) -> None:
    plan = view(text)
    assert plan.stream().upstream_watermarks == ()
    assert plan.dataflow.sink.clock == ()


def test_only_a_view_with_a_topic_of_its_own_tells_one() -> None:
    text = f"SELECT window_start AS opened, count(*) AS n {TENS} {CLOSED}"
    assert view(text).dataflow.sink.clock
    assert view(text, into="INTO taken").dataflow.sink.clock == ()
    assert Planner.of(*DDL).plan(text).dataflow.sink.clock == ()


def test_a_view_is_read_by_its_topic_where_that_tells_a_watermark() -> None:
    planner = Planner.of(
        *DDL,
        f"CREATE MATERIALIZED VIEW tens AS SELECT window_start AS opened, k, count(*) AS n {TENS} {CLOSED}",
        f"CREATE MATERIALIZED VIEW kept AS SELECT window_start AS opened, k, count(*) AS n {TENS}",
    )
    minutes = "SELECT window_start, sum(n) AS n FROM TUMBLE({}, opened, INTERVAL '1 MINUTE') GROUP BY window_start"
    assert planner.plan(f"{minutes.format('tens')} {CLOSED}").reads == ("tens",)
    assert "watermark=opened-0 s (told by its query)" in planner.plan(f"{minutes.format('tens')} {CLOSED}").explain()
    assert planner.plan(f"{minutes.format('kept')} {CLOSED}").reads == ("a",)
    assert planner.plan(minutes.format("kept")).reads == ("kept",)


def test_a_left_row_waits_for_the_watermark_that_a_view_tells() -> None:
    planner = Planner.of(
        *DDL,
        "CREATE TABLE rates (k INT, since TIMESTAMPTZ, rate INT, PRIMARY KEY (k), WATERMARK FOR since AS since)",
        f"CREATE MATERIALIZED VIEW tens AS SELECT window_start AS opened, k, count(*) AS n {TENS} {CLOSED}",
    )
    text = planner.plan("SELECT n, rate FROM tens JOIN rates FOR SYSTEM_TIME AS OF tens.opened ON tens.k = rates.k")
    assert "watermark=opened-0 s (told by its query)" in text.explain()
