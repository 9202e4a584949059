"""Session windows against DuckDB's gaps and islands, over random rows that come and go."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sql.world import Row, World
from tests.tries import tries

DDL = (
    "CREATE MUTABLE STREAM orders (id int, a string, v int, at datetime64(3)) PRIMARY KEY id",
    "CREATE STREAM visits (a string, v int, at datetime64(3))",
    "CREATE SOURCE bids (a VARCHAR, v INT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)",
)
BOUNDS = "window_start, window_end"
QUERIES = {
    "linear": f"SELECT a, {BOUNDS}, count() AS n, sum(v) AS s, avg(v) AS m FROM session(orders, at, 5s) "
    f"GROUP BY a, {BOUNDS}",
    "extremes": f"SELECT a, {BOUNDS}, min(v) AS l, max(v) AS g, count(DISTINCT v) AS d FROM session(orders, at, 3s) "
    f"GROUP BY a, {BOUNDS}",
    "whole groups": f"SELECT a, {BOUNDS}, median(v) AS m, arg_max(v, at) AS x, group_array(v) AS g "
    f"FROM session(orders, at, 4s) GROUP BY a, {BOUNDS}",
    "without keys": f"SELECT {BOUNDS}, count() AS n FROM session(visits, at, 2s) GROUP BY {BOUNDS}",
    "a computed key": f"SELECT v % 2 AS odd, {BOUNDS}, count() AS n FROM session(visits, at, 5s) "
    f"GROUP BY odd, {BOUNDS}",
    "where": f"SELECT a, {BOUNDS}, count() AS n FROM session(orders, at, 5s) AS o WHERE o.v > 0 GROUP BY a, {BOUNDS}",
    "where of bounds": f"SELECT a, {BOUNDS}, count() AS n FROM session(orders, at, 5s) "
    f"WHERE v > 0 AND window_start >= '2024-01-01 00:00:04' GROUP BY a, {BOUNDS}",
    "having": f"SELECT a, {BOUNDS}, count() AS n FROM session(orders, at, 5s) GROUP BY a, {BOUNDS} "
    "HAVING n > 1 AND a = 'x'",
    "one bound": "SELECT a, window_start, count() AS n FROM session(orders, at, 5s) GROUP BY a, window_start",
    "rollup": f"SELECT a, {BOUNDS}, count() AS n FROM session(orders, at, 5s) GROUP BY {BOUNDS}, ROLLUP (a)",
    "of risingwave": f"SELECT a, {BOUNDS}, count(*) AS n FROM SESSION(bids, ts, INTERVAL '5' SECOND) "
    f"GROUP BY a, {BOUNDS}",
    "of a changelog": f"SELECT v, {BOUNDS}, count() AS n FROM session(changelog(visits, a), at, 5s) "
    f"GROUP BY v, {BOUNDS}",
    "of a subquery": f"WITH o AS (SELECT a, v + 1 AS w, at FROM orders WHERE v > 0) SELECT w, {BOUNDS}, count() AS n "
    f"FROM session(o, at, 5s) GROUP BY w, {BOUNDS}",
    "above sessions": "SELECT a, count() AS sessions, max(n) AS longest FROM (SELECT a, window_start, count() AS n "
    f"FROM session(orders, at, 5s) GROUP BY a, {BOUNDS}) AS s GROUP BY a",
    "joined": f"SELECT o.id, s.n FROM orders AS o JOIN (SELECT a, {BOUNDS}, count() AS n FROM session(orders, at, 5s) "
    f"GROUP BY a, {BOUNDS}) AS s ON o.a = s.a WHERE o.at >= s.window_start AND o.at < s.window_end",
}
START = datetime(2024, 1, 1, tzinfo=UTC)


def at(tenths: int | None) -> str | None:
    return None if tenths is None else (START + timedelta(milliseconds=100 * tenths)).strftime("%Y-%m-%d %H:%M:%S.%f")


word = st.none() | st.sampled_from("xy")
number = st.none() | st.integers(-1, 3)
time = st.integers(0, 200).map(at)
visit = st.fixed_dictionaries({"a": word, "v": number, "at": time})
order = st.fixed_dictionaries({"id": st.integers(0, 4), "a": word, "v": number, "at": time})
steps = st.lists(
    st.one_of(st.tuples(st.just("visits"), st.just(True), visit), st.tuples(st.just("orders"), st.booleans(), order)),
    max_size=14,
)


@pytest.mark.parametrize("name", QUERIES)
@settings(max_examples=tries(8))
@given(taken=steps, cut=st.integers(1, 4))
def test_it_is_the_batch_query(name: str, taken: list[tuple[str, bool, Row]], cut: int) -> None:
    world = World.of(*DDL)
    world.start(QUERIES[name])
    for count, (stream, comes, drawn) in enumerate(taken, start=1):
        # A key of changelog() is not NULL.
        row = {**drawn, "a": drawn["a"] or "z"} if name == "of a changelog" else drawn
        if name == "of risingwave":
            # Times rise, so that none is late.
            bid = {"a": row["a"], "v": row["v"], "ts": at(20 * count)}
            world.insert("bids", bid)
        else:
            (world.insert if comes else world.delete)(stream, row)
        if count % cut == 0:
            world.drain()
            assert min(world.net.values(), default=0) >= 0
    world.drain()
    assert world.table() == world.recomputed(QUERIES[name])


def closed(query: str, times: Mapping[int, str], **settings: str) -> list[tuple[object, ...]]:
    """What leaves ``query`` over bids at these seconds, each a batch of its own."""
    world = World.of(*DDL)
    world.start(query, **settings)
    found: list[tuple[object, ...]] = []
    for second, name in times.items():
        world.insert("bids", {"a": name, "v": 1, "ts": at(10 * second)})
        drained = world.drain()
        assert all(delta == 1 for _, delta in drained)
        found += [(second, row["a"], str(row["window_start"])[17:19], row["n"]) for row, _ in drained]
    return found


def test_sessions_leave_once_when_the_watermark_has_reached_their_end() -> None:
    """The watermark is 5 s behind: that of the row at 20 is 15, where the session of 10 ends."""
    query = (
        f"SELECT a, {BOUNDS}, count(*) AS n FROM SESSION(bids, ts, INTERVAL '5' SECOND) GROUP BY a, {BOUNDS} "
        "EMIT ON WINDOW CLOSE"
    )
    assert closed(query, {1: "x", 3: "x", 10: "x", 13: "y", 20: "x", 40: "y"}) == [
        (13, "x", "01", 2),
        (20, "x", "10", 1),
        (40, "y", "13", 1),
        (40, "x", "20", 1),
    ]


def test_a_longest_session_leaves_before_the_rows_end() -> None:
    query = (
        f"SELECT a, {BOUNDS}, count(*) AS n FROM SESSION(bids, ts, INTERVAL '5' SECOND, INTERVAL '6' SECOND) "
        f"GROUP BY a, {BOUNDS} EMIT ON WINDOW CLOSE"
    )
    assert closed(query, dict.fromkeys(range(0, 20, 2), "x")) == [
        (12, "x", "00", 3),
        (18, "x", "06", 3),
    ]
