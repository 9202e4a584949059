"""Which joins are of rows near in time, how near, and what bounds their state."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from dovetail.changelog.errors import SqlError, Unsupported
from dovetail.joins.dataflow.ports import Watermark
from dovetail.joins.operators.range import Band, RangeSpec
from dovetail.sql.plan.joins import Bidirectional, Enrichment, Range
from dovetail.sql.plan.nodes import Join, Scan
from dovetail.sql.plan.properties import walk
from tests.sql.world import World

DDL = (
    "CREATE STREAM l (k int, t datetime64(6), d date, seq int64, n int)",
    "CREATE STREAM r (k int, t datetime64(6), d date, seq int64, n int)",
    "CREATE MUTABLE STREAM m (k int, t datetime64(3)) PRIMARY KEY k",
    "CREATE MATERIALIZED VIEW v AS SELECT k, t FROM l",
    "CREATE TABLE a (k INT, ts TIMESTAMP, tz TIMESTAMPTZ, WATERMARK FOR ts AS ts - INTERVAL '5 seconds') APPEND ONLY",
    "CREATE TABLE b (k INT, ts TIMESTAMP, tz TIMESTAMPTZ, WATERMARK FOR ts AS ts - INTERVAL '5 seconds') APPEND ONLY",
    "CREATE TABLE p (k INT, ts TIMESTAMP, PRIMARY KEY (k))",
    "CREATE TABLE q (k INT, ts TIMESTAMP, PRIMARY KEY (k))",
)
SECOND = 1_000_000


@pytest.fixture(scope="module")
def world() -> World:
    return World.of(*DDL)


def the_join(world: World, query: str, **settings: str | int) -> Join:
    made = world.plan(query, **settings).output
    assert made is not None
    return next(node for node in walk(made) if isinstance(node, Join))


def the_range(world: World, query: str, **settings: str | int) -> Range:
    method = the_join(world, query, **settings).method
    assert isinstance(method, Range)
    return method


def streams(condition: str) -> str:
    return f"SELECT l.k FROM l JOIN r ON l.k = r.k AND {condition}"


@pytest.mark.parametrize(
    ("kind", "within", "bound"),
    [
        ("datetime", "10s", 10),
        ("datetime", "1500ms", 1),
        ("datetime64(3)", "10s", 10_000),
        ("datetime64(3)", "1500ms", 1_500),
        ("datetime64(6)", "1500ms", 1_500_000),
    ],
)
def test_a_band_counts_in_the_unit_of_its_times(kind: str, within: str, bound: int) -> None:
    world = World.of(*(f"CREATE STREAM {name} (k int, t {kind})" for name in ("l", "r")))
    assert the_range(world, streams(f"date_diff_within({within}, l.t, r.t)")).band == Band("l.t", "r.t", -bound, bound)


def tables(condition: str, kind: str = "") -> str:
    return f"SELECT a.k FROM a {kind} JOIN b ON a.k = b.k AND {condition}"


@pytest.mark.parametrize(
    ("condition", "band", "delay_ms"),
    [
        ("date_diff_within(2m)", Band("l._tp_time", "r._tp_time", -120_000, 120_000), 240_000),
        ("date_diff_within(10s, l.t, r.t)", Band("l.t", "r.t", -10 * SECOND, 10 * SECOND), 20_000),
        ("date_diff_within(l.t, r.t, 10s)", Band("l.t", "r.t", -10 * SECOND, 10 * SECOND), 20_000),
        ("date_diff_within(10s, l.t, date_add(r.t, 1s))", Band("l.t", "r.t", -9 * SECOND, 11 * SECOND), 20_000),
        ("date_diff('second', l.t, r.t) BETWEEN -2 AND 8", Band("l.t", "r.t", -2 * SECOND, 8 * SECOND), 10_000),
        (
            "date_diff('second', r.t, l.t) > 0 AND date_diff('second', r.t, l.t) < 10",
            Band("l.t", "r.t", -10 * SECOND + 1, -1),
            10_000,
        ),
        ("l.t >= r.t - 10s AND l.t <= r.t + 1m", Band("l.t", "r.t", -10 * SECOND, 60 * SECOND), 70_000),
        ("l.seq < r.seq + 100 AND l.seq > r.seq - 100", Band("l.seq", "r.seq", -99, 99, None, None), None),
        ("date_diff_within(100s, l.seq, r.seq)", Band("l.seq", "r.seq", -100, 100, None, None), None),
        ("date_diff_within(10000, l.seq, r.seq)", Band("l.seq", "r.seq", -10_000, 10_000, None, None), None),
        ("date_diff_within(l.seq, r.seq, 10000)", Band("l.seq", "r.seq", -10_000, 10_000, None, None), None),
        ("date_diff_within(100s, l.n, r.seq)", Band("__k0", "r.seq", -100, 100, None, None), None),
        ("date_diff('day', l.d, r.d) BETWEEN 0 AND 1", Band("__k0", "__k1", 0, 86_400 * SECOND), 86_400_000),
    ],
)
def test_ranges_of_streams(world: World, condition: str, band: Band, delay_ms: int | None) -> None:
    """Whole numbers need not grow: without ``watermark_delay`` there is no watermark over them."""
    plan = world.plan(streams(condition))
    (node,) = plan.dataflow.nodes
    assert isinstance(node.operator, RangeSpec)
    assert node.operator.band == band
    assert node.operator.condition is None
    for scan, port in zip(plan.dataflow.scans, (node.operator.left, node.operator.right), strict=True):
        if delay_ms is None:
            assert scan.watermark is None
            continue
        assert scan.watermark is not None
        assert (scan.watermark.delay_ms, scan.watermark.shared) == (delay_ms, True)
        assert port.watermark is not None
        assert port.watermark.column == f"{scan.stream.name}.{scan.watermark.column}"


@pytest.mark.parametrize(
    "condition",
    [
        "l.t > r.t",
        "l.seq < r.seq + 100",
        "date_diff('second', l.t, r.t) >= 0",
        "l.t BETWEEN r.t AND r.t + INTERVAL 1 MONTH",
        "date_trunc('minute', l.t) > r.t",
    ],
)
def test_what_bounds_nothing_is_a_condition_like_any_other(world: World, condition: str) -> None:
    join = the_join(world, streams(condition))
    assert join.method == Bidirectional()
    assert join.residual is not None


def test_further_conditions_are_residual(world: World) -> None:
    join = the_join(world, streams("date_diff_within(10s, l.t, r.t) AND l.n < r.n AND l.seq > r.seq"))
    assert isinstance(join.method, Range)
    assert join.residual is not None
    assert join.residual.text == '("l.n" < "r.n") AND ("l.seq" > "r.seq")'


def test_settings_of_watermarks(world: World) -> None:
    settings = {"watermark_delay": "5s", "idle_timeout": "30s", "max_future": "1h"}
    join = the_join(world, streams("date_diff('second', l.t, r.t) >= 0"), **settings)
    (left, _) = (scan for scan in walk(join) if isinstance(scan, Scan))
    assert left.watermark == Watermark("t", 5_000, 30_000, shared=True, max_future_ms=3_600_000)
    assert join.method == Range(Band("l.t", "r.t", 0, None))
    join = the_join(world, streams("date_diff_within(9s, l.seq, r.seq)"), watermark_delay=7)
    (left, _) = (scan for scan in walk(join) if isinstance(scan, Scan))
    assert left.watermark is not None
    assert left.watermark.delay_ms == 7


def test_the_rows_of_a_view_come_in_no_order_of_time(world: World) -> None:
    query = "SELECT v.k FROM v JOIN r ON v.k = r.k AND date_diff_within(10s, v.t, r.t)"
    assert [scan.watermark is None for scan in world.plan(query).dataflow.scans] == [True, False]
    delayed = world.plan(query, watermark_delay="1m").dataflow
    assert [scan.watermark is None for scan in delayed.scans] == [False, False]
    (node,) = delayed.nodes
    assert isinstance(node.operator, RangeSpec)
    assert node.operator.left.watermark is not None


@pytest.mark.parametrize(
    ("condition", "band"),
    [
        ("a.ts BETWEEN b.ts AND b.ts + INTERVAL '1' MINUTE", Band("a.ts", "b.ts", 0, 60 * SECOND)),
        ("a.ts >= b.ts", Band("a.ts", "b.ts", 0, None)),
        ("a.ts + INTERVAL '5 SECONDS' > b.ts", Band("a.ts", "b.ts", -5 * SECOND + 1, None)),
        ("a.ts >= b.tz", Band("__k0", "b.tz", 0, None, 0, None)),
        ("a.tz BETWEEN b.ts AND b.ts + INTERVAL '1' MINUTE", Band("a.tz", "__k0", 0, 60 * SECOND, None, 0)),
        ("a.tz BETWEEN b.tz AND b.tz + INTERVAL '1' MINUTE", Band("a.tz", "b.tz", 0, 60 * SECOND, None, None)),
    ],
)
def test_intervals_of_tables(world: World, condition: str, band: Band) -> None:
    assert the_range(world, tables(condition)).band == band


def test_conditions_of_where_are_of_the_join(world: World) -> None:
    query = "SELECT a.k FROM a, b WHERE a.k = b.k AND a.ts >= b.ts"
    assert the_range(world, query).band == Band("a.ts", "b.ts", 0, None)


def test_the_band_that_bounds_more_is_taken(world: World) -> None:
    two = "a.tz >= b.tz AND a.tz <= b.tz + INTERVAL '1' MINUTE"
    join = the_join(world, tables(f"{two} AND a.ts >= b.ts"))
    assert join.method == Range(Band("a.ts", "b.ts", 0, None))
    assert join.residual is not None


def test_a_constant_on_the_way_shifts_the_watermark(world: World) -> None:
    query = (
        "SELECT x.k FROM (SELECT k, ts + INTERVAL '3 seconds' AS late FROM a) AS x "
        "JOIN b ON x.k = b.k AND x.late BETWEEN b.ts AND b.ts + INTERVAL '1 minute'"
    )
    assert the_range(world, query).band == Band("x.late", "b.ts", 0, 60 * SECOND, left_shift=3_000)
    (node,) = world.plan(query).dataflow.nodes
    assert isinstance(node.operator, RangeSpec)
    assert node.operator.left.watermark is not None
    assert node.operator.left.watermark.column == "a.ts"


def test_rows_that_can_be_taken_back_stay(world: World) -> None:
    near = "BETWEEN q.ts AND q.ts + INTERVAL '1' MINUTE"
    both = the_join(world, f"SELECT p.k FROM p LEFT JOIN q ON p.k = q.k AND p.ts {near}")
    assert both.method == Range(Band("p.ts", "q.ts", 0, 60 * SECOND, None, None))
    assert "left the current rows, right the current rows" in both.line
    one = the_join(world, f"SELECT a.k FROM a JOIN q ON a.k = q.k AND a.ts {near}")
    assert "left all rows, unbounded: rows can be taken back" in one.line
    assert the_join(world, "SELECT p.k FROM p JOIN q ON p.k = q.k AND p.ts > q.ts").method == Bidirectional()


def test_one_shot_joins_have_no_band(world: World) -> None:
    join = the_join(world, "SELECT l.k FROM l JOIN m ON l.k = m.k AND date_diff_within(5s, l.t, m.t)")
    assert join.method == Enrichment()


def test_the_state_of_a_side_is_named_with_what_clears_it(world: World) -> None:
    parts = "(10 s range + 20 s watermark delay, as wide as the range)"
    assert (
        f"state: left 30 s of l.t behind r.t {parts}, right 30 s of r.t behind l.t {parts}"
        in the_join(world, streams("date_diff_within(10s, l.t, r.t)")).line
    )
    assert (
        "state: left 5 s of a.ts behind b.ts, right all rows, unbounded: a.ts - b.ts has no upper bound"
        in the_join(world, tables("a.ts >= b.ts")).line
    )
    assert "there is no watermark over b.tz" in the_join(world, tables("a.ts >= b.tz")).line
    assert (
        "left 106 of l.seq behind r.seq"
        in the_join(world, streams("l.seq < r.seq + 100 AND l.seq > r.seq - 100"), watermark_delay=7).line
    )


def test_a_bounded_join_has_no_limit_that_nobody_asked_for(world: World) -> None:
    near = streams("date_diff_within(10s, l.t, r.t)")
    assert the_join(world, near).max_buffered_bytes is None
    assert the_join(world, near, join_max_buffered_bytes=7).max_buffered_bytes == 7
    assert the_join(world, streams("l.t > r.t")).max_buffered_bytes == 524_288_000


@pytest.mark.parametrize(
    ("query", "updating"),
    [
        (streams("date_diff_within(10s)"), False),
        (streams("date_diff_within(10s)").replace("JOIN", "LEFT JOIN"), True),
        (tables("a.ts >= b.ts"), False),
        (tables("a.ts >= b.ts", "FULL"), True),
        (tables("a.ts >= b.ts", "LEFT SEMI"), False),
        (tables("a.ts >= b.ts", "LEFT ANTI"), True),
    ],
)
def test_updating(world: World, query: str, updating: bool) -> None:
    assert world.plan(query).updating == updating


@pytest.mark.parametrize("kind", ["LEFT", "LEFT ANTI"])
def test_unmatched_rows_leave_once_where_that_is_asked_for(world: World, kind: str) -> None:
    assert the_range(world, tables("a.ts >= b.ts", kind), output="append").append
    assert not world.plan(tables("a.ts >= b.ts", kind), output="append").updating
    assert not the_range(world, tables("a.ts >= b.ts"), output="append").append


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (tables("a.ts >= b.ts", "RIGHT"), "a.ts - b.ts has no upper bound"),
        (tables("a.ts >= b.ts", "FULL"), "a.ts - b.ts has no upper bound"),
        (tables("a.ts BETWEEN b.tz AND b.tz + INTERVAL '1' DAY", "LEFT"), "there is no watermark over b.tz"),
        (
            "SELECT p.k FROM p LEFT JOIN q ON p.k = q.k AND p.ts BETWEEN q.ts AND q.ts + INTERVAL '1' DAY",
            "rows can be taken back",
        ),
    ],
)
def test_an_append_form_that_there_is_not_is_refused(world: World, query: str, reason: str) -> None:
    with pytest.raises(Unsupported) as refused:
        world.plan(query, output="append")
    assert reason in refused.value.what
    assert refused.value.where == "SETTINGS output"


@pytest.mark.parametrize(
    ("condition", "settings", "message"),
    [
        ("date_diff_within(0s)", {}, "one positive interval"),
        ("date_diff('second', l.t, r.t) BETWEEN 8 AND -2", {}, "8 s at least and -2 s at most"),
        ("l.seq > r.seq AND l.seq < r.seq + 1", {}, "1 at least and 0 at most"),
        ("date_diff_within(151s)", {"max_join_range": 300}, "302 s wide, and max_join_range is 300 s"),
        ("date_diff('second', l.t, r.t) > 0", {"max_join_range": 300, "watermark_delay": "1s"}, "has one bound"),
        ("date_diff_within(5s, l.seq, r.seq)", {"watermark_delay": "5s"}, "watermark_delay cannot be"),
    ],
)
def test_a_range_that_makes_no_sense_is_refused(
    world: World, condition: str, settings: Mapping[str, str | int], message: str
) -> None:
    with pytest.raises(SqlError) as fault:
        world.plan(streams(condition), **settings)
    assert message in fault.value.what
    assert fault.value.fix


def test_a_range_needs_an_equality(world: World) -> None:
    with pytest.raises(Unsupported, match="needs an equality"):
        world.plan("SELECT l.k FROM l JOIN r ON date_diff_within(10s)")


def test_an_interval_of_tables_may_hold_nothing(world: World) -> None:
    empty = tables("a.ts BETWEEN b.ts + INTERVAL '5 SECONDS' AND b.ts + INTERVAL '1 SECONDS'", "FULL")
    assert the_range(world, empty).band == Band("a.ts", "b.ts", 5 * SECOND, SECOND)


def test_what_answers_a_semi_or_anti_join(world: World) -> None:
    assert the_join(world, "SELECT a.k FROM a LEFT ANTI JOIN b ON a.k = b.k").method == Bidirectional()
    assert the_join(world, "SELECT l.k FROM l LEFT ANTI JOIN r ON l.k = r.k").method == Enrichment()
    near = the_join(world, "SELECT l.k FROM l LEFT ANTI JOIN r ON l.k = r.k AND date_diff_within(10s)")
    assert isinstance(near.method, Range)
    assert near.kind == "anti"


CONDITIONS = (
    "date_diff_within(2s, {0}.t, {1}.t)",
    "date_diff('second', {0}.t, {1}.t) BETWEEN -1 AND 3",
    "date_diff('second', {1}.t, {0}.t) > 0 AND date_diff('second', {1}.t, {0}.t) < 2",
    "{0}.t BETWEEN {1}.t - INTERVAL '1' SECOND AND {1}.t + INTERVAL '1 second 500 milliseconds'",
    "date_diff_within(2s, {0}.t, {1}.t + INTERVAL '1' SECOND) AND {0}.n <> {1}.n",
    "{0}.n < {1}.n + 3 AND {0}.n >= {1}.n - 1",
    "date_diff_within(2s, {0}.n, {1}.n)",
    "{0}.n - {1}.n = 2",
    "date_diff('day', {0}.d, {1}.d) BETWEEN -1 AND 1",
)


@pytest.mark.parametrize("kind", ["JOIN", "FULL JOIN"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_same_rows_match_as_in_a_batch(condition: str, kind: str) -> None:
    """Over tables without a watermark, so that nothing is late, and rows come and go."""
    world = World.of(
        "CREATE TABLE x (k INT, t TIMESTAMPTZ, d DATE, n INT)",
        "CREATE TABLE y (k INT, t TIMESTAMPTZ, d DATE, n INT)",
    )
    near = condition.format("x", "y")
    query = f"SELECT x.k, x.t, x.n, y.k AS k2, y.t AS t2, y.n AS n2 FROM x {kind} y ON x.k = y.k AND {near}"
    assert isinstance(the_join(world, query).method, Range)
    world.start(query)
    generator = random.Random(f"{condition} {kind}")
    held: dict[str, list[dict[str, object]]] = {"x": [], "y": []}
    for _ in range(4):
        for table in ("x", "y"):
            rows = [_row(generator) for _ in range(8)]
            world.insert(table, *rows)
            held[table] += rows
            if generator.random() < 0.5:
                world.delete(table, held[table].pop(generator.randrange(len(held[table]))))
        world.drain()
        assert world.table() == world.recomputed(query)


def _row(generator: random.Random) -> dict[str, object]:
    ms = generator.choice([None, *(500 * step for step in range(12))])
    return {
        "k": generator.choice([1, 1, 1, 2, None]),
        "t": None if ms is None else f"2024-03-01 00:00:{ms // 1000:02}.{ms % 1000:03}",
        "d": generator.choice([None, "2024-02-28", "2024-02-29", "2024-03-01", "2024-03-02"]),
        "n": generator.choice([None, -2, -1, 0, 1, 2, 3]),
    }
