"""TUMBLE and HOP: the windows of a row, and joins of rows in the same window."""

from __future__ import annotations

import pickle
import random
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.changelog.changes import DELTA
from dovetail.changelog.errors import SqlError, UnknownName, Unsupported
from dovetail.joins.operators.range import Band, RangeSpec
from dovetail.sql.plan.joins import Bidirectional, Range
from dovetail.sql.plan.nodes import Join, Window
from dovetail.sql.plan.properties import walk
from dovetail.sql.plan.window_shape import WindowShape
from dovetail.sql.transforms.window_step import WindowStep
from tests.sql.world import World
from tests.tries import tries

DDL = (
    "CREATE STREAM l (k int, t datetime64(3), n int)",
    "CREATE STREAM r (k int, t datetime64(3), n int)",
    "CREATE STREAM log (k int, t datetime64(3)) SETTINGS mode='changelog'",
    "CREATE STREAM named (k int, t datetime64(3), window_start int)",
    "CREATE TABLE a (k INT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5 seconds') APPEND ONLY",
    "CREATE TABLE b (k INT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5 seconds') APPEND ONLY",
    "CREATE TABLE p (id INT, k INT, ts TIMESTAMP, PRIMARY KEY (id))",
    "CREATE TABLE q (id INT, k INT, ts TIMESTAMP, PRIMARY KEY (id))",
    "CREATE MATERIALIZED VIEW minutes AS SELECT k, window_start AS minute FROM TUMBLE(a, ts, INTERVAL '1' MINUTE)",
)
MINUTE = "INTERVAL '1' MINUTE"
TIMES = st.integers(-(2**31), 2**32).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))


@pytest.fixture(scope="module")
def world() -> World:
    return World.of(*DDL)


def the_join(world: World, query: str, **settings: str) -> Join:
    made = world.plan(query, **settings).output
    assert made is not None
    return next(node for node in walk(made) if isinstance(node, Join))


@pytest.mark.parametrize(
    ("size", "slide", "offset", "time", "starts"),
    [
        (10, 10, 0, 12, [10]),
        (10, 10, 0, 10, [10]),
        (10, 10, 0, -3, [-10]),
        (10, 5, 0, 12, [5, 10]),
        (10, 4, 0, 12, [4, 8, 12]),
        (10, 4, 0, 11, [4, 8]),
        (5, 10, 0, 12, [10]),
        (5, 10, 0, 17, []),
        (10, 5, 0, None, []),
        (10, 10, 3, 12, [3]),
        (10, 10, 3, 13, [13]),
        (10, 10, 3, 2, [-7]),
        (10, 5, 2, 12, [7, 12]),
        (10, 5, 2, 11, [2, 7]),
        (5, 10, 2, 12, [12]),
        (5, 10, 2, 7, []),
    ],
)
@pytest.mark.parametrize("unit", ["ms", "us"])
def test_the_windows_of_a_time(
    size: int, slide: int, offset: int, time: int | None, starts: list[int], unit: str
) -> None:
    kind = pa.timestamp(unit, "UTC")
    windows = pickle.loads(pickle.dumps(WindowStep("t", WindowShape(size, slide, offset), "s", "e")))
    per_ms = {"ms": 1, "us": 1_000}[unit]
    times = pa.array([None if time is None else time * per_ms], kind)
    rows = windows(pa.table({"t": times, "n": [7], DELTA: pa.array([-1], pa.int64())}))
    assert rows.column_names == ["t", "n", "s", "e", DELTA]
    assert rows.schema.field("s").type == rows.schema.field("e").type == kind
    assert rows["s"].cast(pa.int64()).to_pylist() == [start * per_ms for start in starts]
    assert rows["e"].cast(pa.int64()).to_pylist() == [(start + size) * per_ms for start in starts]
    assert rows[DELTA].to_pylist() == [-1] * len(starts)


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
@given(
    time=TIMES,
    size=st.integers(1, 30),
    slide=st.integers(1, 30),
)
def test_windows_of_the_calendar_begin_with_a_month(time: datetime, size: int, slide: int, unit: str) -> None:
    def month(number: int) -> datetime:
        return datetime(1970 + number // 12, number % 12 + 1, 1, tzinfo=UTC)

    last = (time.year - 1970) * 12 + time.month - 1
    wanted = [
        (month(first), month(first + size))
        for first in range(last - size - slide, last + 1)
        if first % slide == 0 and month(first) <= time < month(first + size)
    ]
    windows = pickle.loads(pickle.dumps(WindowStep("t", WindowShape.of_months(size, slide), "s", "e")))
    rows = windows(pa.table({"t": pa.array([time, None], pa.timestamp(unit, "UTC")), DELTA: pa.array([1, 1])}))
    assert list(zip(rows["s"].to_pylist(), rows["e"].to_pylist(), strict=True)) == wanted


@given(
    times=st.lists(TIMES, min_size=1, max_size=8),
    size=st.integers(1, 14),
    slide=st.integers(1, 14),
)
@settings(max_examples=tries(20))
def test_windows_of_the_calendar_are_the_same_over_tables(times: list[datetime], size: int, slide: int) -> None:
    world = World.of("CREATE STREAM s (id int, at datetime64(6))")
    query = f"SELECT id, window_start, window_end FROM hop(s, at, INTERVAL {slide} MONTH, INTERVAL {size} MONTH)"
    world.start(query)
    world.insert("s", *({"id": number, "at": f"{time:%Y-%m-%d %H:%M:%S.%f}"} for number, time in enumerate(times)))
    world.drain()
    assert world.table() == world.over_content(query)


def test_windows_of_the_calendar_close_at_their_end() -> None:
    world = World.of("CREATE STREAM s (id int, at datetime64(3))")
    groups = "GROUP BY window_start, window_end EMIT AFTER WINDOW CLOSE WITH DELAY 1s"
    world.start(f"SELECT window_start, count() AS n FROM tumble(s, at, 1M) {groups}")
    world.insert("s", {"id": 1, "at": "2026-02-10 00:00:00"})
    world.insert("s", {"id": 2, "at": "2026-03-01 00:00:00"})
    assert world.drain() == []
    world.insert("s", {"id": 3, "at": "2026-03-01 00:00:02"})
    assert [(row["n"], delta) for row, delta in world.drain()] == [(1, 1)]


def test_the_arguments(world: World) -> None:
    def window(query: str) -> Window:
        made = world.plan(query).output
        assert made is not None
        return next(node for node in walk(made) if isinstance(node, Window))

    whole = window("SELECT * FROM tumble(l, 10s)")
    assert (whole.time, whole.windows) == ("l._tp_time", WindowShape(10_000, 10_000))
    assert window("SELECT * FROM TUMBLE(a, ts, INTERVAL '1 MINUTE') AS x").time == "x.ts"
    hopping = window("SELECT * FROM hop(l, t, 5s, 1m)")
    assert (hopping.time, hopping.windows) == ("l.t", WindowShape(60_000, 5_000))
    later = window("SELECT * FROM TUMBLE(a, ts, INTERVAL '1' MINUTE, INTERVAL '5' SECOND) AS x")
    assert later.windows == WindowShape(60_000, 60_000, 5_000)
    earlier = window("SELECT * FROM HOP(a, ts, INTERVAL '10' SECOND, INTERVAL '1' MINUTE, INTERVAL '-3' SECOND) AS x")
    assert earlier.windows == WindowShape(60_000, 10_000, 7_000)
    assert "size 60 s every 10 s, offset 7 s" in earlier.line
    assert window("SELECT * FROM tumble(l, t, 1M)").windows == WindowShape.of_months(1, 1)
    assert window("SELECT * FROM tumble(l, t, '1 month')").windows == WindowShape.of_months(1, 1)
    assert window("SELECT * FROM tumble(l, 1y)").windows == WindowShape.of_months(12, 12)
    assert "size 3 months every 1 month" in window("SELECT * FROM hop(l, t, INTERVAL 1 MONTH, 1q)").line


def test_the_columns(world: World) -> None:
    assert world.plan("SELECT * FROM tumble(l, 10s)").columns == (
        "k",
        "t",
        "n",
        "_tp_time",
        "window_start",
        "window_end",
    )
    assert world.plan("SELECT x.window_end FROM TUMBLE(a, ts, INTERVAL '1' MINUTE) AS x").columns == ("window_end",)
    assert world.plan("WITH c AS (SELECT k, ts AS at FROM a) SELECT k FROM TUMBLE(c, at, INTERVAL '1' HOUR)").columns


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT * FROM tumble(l, t)", "TUMBLE takes other arguments"),
        ("SELECT * FROM tumble(l, t, 10s, 5s, 5s)", "TUMBLE takes other arguments"),
        ("SELECT * FROM tumble(l, t, 10s, 100us)", "the offset of TUMBLE is of whole milliseconds"),
        ("SELECT * FROM hop(l, t, 10s)", "HOP takes other arguments"),
        ("SELECT * FROM tumble(10s, l)", "TUMBLE takes other arguments"),
        ("SELECT * FROM tumble(l, t, 0s)", "whole milliseconds, above 0"),
        ("SELECT * FROM tumble(l, t, 0M)", "months have no fixed length"),
        ("SELECT * FROM tumble(l, t, INTERVAL '0.5' MONTH)", "months have no fixed length"),
        ("SELECT * FROM tumble(l, t, 1M, 1d)", "months have no fixed length"),
        ("SELECT * FROM hop(l, t, 1d, 1M)", "months have no fixed length"),
        ("SELECT * FROM tumble(l, k + 1, 10s)", "windows are of time, and k + 1 is int64"),
        ("SELECT * FROM tumble(l, k, 10s)", 'windows are of time, and "k" is int32'),
        ("SELECT * FROM tumble(named, t, 10s)", 'has a column "window_start" already'),
        ("SELECT * FROM tumble(log, 10s)", "a _tp_time of its own"),
    ],
)
def test_what_is_no_window(world: World, query: str, message: str) -> None:
    with pytest.raises(SqlError) as fault:
        world.plan(query)
    assert message in fault.value.what
    assert fault.value.fix


def test_names_that_there_are_not(world: World) -> None:
    with pytest.raises(UnknownName, match='no stream or view "nope"'):
        world.plan("SELECT * FROM tumble(nope, 10s)")
    with pytest.raises(UnknownName, match='no column "nope"'):
        world.plan("SELECT * FROM tumble(l, nope, 10s)")


def both(condition: str, kind: str = "JOIN") -> str:
    return f"SELECT x.k FROM TUMBLE(a, ts, {MINUTE}) AS x {kind} TUMBLE(b, ts, {MINUTE}) AS y ON {condition}"


@pytest.mark.parametrize(
    ("condition", "keys", "band"),
    [
        (
            "x.k = y.k AND x.window_start = y.window_start",
            (("x.k", "y.k"),),
            Band("x.window_start", "y.window_start", 0, 0, -59_999, -59_999),
        ),
        (
            "x.k = y.k AND x.window_end = y.window_end",
            (("x.k", "y.k"),),
            Band("x.window_end", "y.window_end", 0, 0, 1, 1),
        ),
        (
            "x.window_start = y.window_start AND x.window_end = y.window_end",
            (("x.window_start", "y.window_start"),),
            Band("x.window_start", "y.window_start", 0, 0, -59_999, -59_999),
        ),
    ],
)
def test_windows_that_close(world: World, condition: str, keys: tuple[tuple[str, str], ...], band: Band) -> None:
    join = the_join(world, both(condition))
    assert (join.method, join.keys, join.residual) == (Range(band), keys, None)


def test_null_safe_keys_beside_the_window(world: World) -> None:
    join = the_join(world, both("x.window_start = y.window_start AND x.k IS NOT DISTINCT FROM y.k"))
    assert (join.keys, join.null_safe) == ((("x.k", "y.k"),), (True,))


def test_windows_of_streams(world: World) -> None:
    same = "x.k = y.k AND x.window_start = y.window_start"
    query = f"SELECT x.k FROM tumble(l, 10s) AS x JOIN tumble(r, t, 10s) AS y ON {same}"
    (node,) = world.plan(query).dataflow.nodes
    assert isinstance(node.operator, RangeSpec)
    assert [port.watermark is not None for port in (node.operator.left, node.operator.right)] == [True, True]
    delays = [scan.watermark.delay_ms for scan in world.plan(query).dataflow.scans if scan.watermark is not None]
    assert delays == [10_000, 10_000]


def test_windows_of_updating_rows_never_close(world: World) -> None:
    same = "x.window_start = y.window_start"
    query = f"SELECT x.id FROM TUMBLE(p, ts, {MINUTE}) AS x JOIN TUMBLE(q, ts, {MINUTE}) AS y ON {same}"
    join = the_join(world, query)
    assert (join.method, join.keys) == (Bidirectional(), (("x.window_start", "y.window_start"),))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            both("x.k = y.k AND x.window_start = y.window_start").replace(MINUTE, "INTERVAL '5' MINUTE", 1),
            "differ: 300 s",
        ),
        (
            "SELECT x.k FROM tumble(l, 10s) AS x JOIN r ON x.k = r.k AND x.window_start = r.t",
            "x.window_start is the time of a window",
        ),
        (
            "SELECT x.k FROM tumble(l, 10s) AS x JOIN r ON x.k = r.k AND x.window_end = date_trunc('minute', r.t)",
            "x.window_end is the time of a window",
        ),
        (
            f"SELECT x.id FROM p JOIN TUMBLE(q, ts, {MINUTE}) AS x ON p.k = x.k AND p.ts = x.window_start",
            "x.window_start is the time of a window",
        ),
    ],
)
def test_windows_that_do_not_go_together_are_refused(world: World, query: str, message: str) -> None:
    with pytest.raises(Unsupported) as refused:
        world.plan(query)
    assert message in refused.value.what
    assert "window" in refused.value.fix


def test_a_window_may_stand_on_one_side(world: World) -> None:
    query = "SELECT window_start FROM tumble(l, 10s) AS x JOIN r ON x.k = r.k AND date_diff_within(5s, x.t, r.t)"
    assert the_join(world, query).method == Range(Band("x.t", "r.t", -5_000, 5_000))


def test_the_windows_of_a_view_are_columns_like_any_other(world: World) -> None:
    query = f"SELECT x.k FROM minutes JOIN TUMBLE(b, ts, {MINUTE}) AS x ON minutes.k = x.k AND minute = x.window_start"
    assert the_join(world, query).method == Bidirectional()


def test_conditions_pass_below_windows(world: World) -> None:
    plan = world.explain("SELECT k FROM tumble(l, 10s) WHERE k > 1 AND window_start > '2024-01-01'")
    assert "Map  where l.window_start" in plan
    assert "where l.k > 1" in plan


@pytest.mark.parametrize(
    "windows", ["TUMBLE({0}, ts, INTERVAL '4' SECOND)", "HOP({0}, ts, INTERVAL '2' SECOND, INTERVAL '5' SECOND)"]
)
@pytest.mark.parametrize("key", ["", "x.k = y.k AND "])
def test_the_same_rows_match_as_in_a_batch(windows: str, key: str) -> None:
    """Updates move rows between windows."""
    world = World.of(*DDL)
    query = (
        f"SELECT x.id, y.id AS id2, x.window_start, y.window_end FROM {windows.format('p')} AS x FULL JOIN "
        f"{windows.format('q')} AS y ON {key}x.window_start = y.window_start"
    )
    world.start(query)
    generator = random.Random(query)
    for _ in range(5):
        for table in ("p", "q"):
            world.insert(table, *(_row(generator) for _ in range(5)))
        world.drain()
        assert world.table() == world.recomputed(query)


def _row(generator: random.Random) -> dict[str, object]:
    second = generator.choice([None, *range(14)])
    time = None if second is None else f"2024-03-01 00:00:{second:02}.500"
    return {"id": generator.randrange(8), "k": generator.choice([1, 2, None]), "ts": time}
