"""The watermark of UNION ALL: the least of those of its parts closes what is above it."""

from __future__ import annotations

import random

import pytest

from dovetail.changelog.errors import Unsupported
from tests.sql.world import Row, World

DDL = (
    "CREATE TABLE a (k INT, at TIMESTAMPTZ, WATERMARK FOR at AS at - INTERVAL '5 seconds') APPEND ONLY",
    "CREATE TABLE b (seen TIMESTAMPTZ, k INT, WATERMARK FOR seen AS seen - INTERVAL '2 seconds') APPEND ONLY",
    "CREATE TABLE bare (k INT, at TIMESTAMPTZ) APPEND ONLY",
    "CREATE STREAM s (k int, t datetime64(3))",
    "CREATE STREAM r (k int, u datetime64(3))",
)
BOTH = "WITH u AS (SELECT k, at FROM a UNION ALL SELECT k, seen FROM b) "
WINDOWS = BOTH + "SELECT window_start, count(*) AS n FROM TUMBLE(u, at, INTERVAL '1' MINUTE) GROUP BY window_start"
STREAMS = "WITH u AS (SELECT k, t FROM s UNION ALL SELECT k, u FROM r) "
CLOSED = {
    "windows": WINDOWS + " EMIT ON WINDOW CLOSE",
    "windows of the parts": "SELECT window_start, k, count(*) AS n FROM (SELECT window_start, k FROM TUMBLE(a, at, "
    "INTERVAL '1' MINUTE) UNION ALL SELECT window_start, k FROM TUMBLE(b, seen, INTERVAL '1' MINUTE)) AS u "
    "GROUP BY window_start, k EMIT ON WINDOW CLOSE",
    "closed groups of the parts": "SELECT window_start, sum(n) AS n FROM (SELECT window_start, count(*) AS n FROM "
    "TUMBLE(a, at, INTERVAL '1' MINUTE) GROUP BY window_start UNION ALL SELECT window_start, count(*) FROM TUMBLE(b, "
    "seen, INTERVAL '1' MINUTE) GROUP BY window_start) AS u GROUP BY window_start EMIT ON WINDOW CLOSE",
    "each part by itself": "SELECT window_start, count(*) AS n FROM TUMBLE(a, at, INTERVAL '1' MINUTE) "
    "GROUP BY window_start UNION ALL SELECT window_start, count(*) FROM TUMBLE(b, seen, INTERVAL '1' MINUTE) "
    "GROUP BY window_start EMIT ON WINDOW CLOSE",
    "distinct": BOTH.replace("UNION ALL", "UNION")
    + "SELECT window_start, count(*) AS n FROM TUMBLE(u, at, INTERVAL '1' "
    "MINUTE) GROUP BY window_start EMIT ON WINDOW CLOSE",
    "a part of it again": "WITH u AS (SELECT k, at FROM a UNION ALL SELECT k, seen FROM b), w AS (SELECT k, at FROM u "
    "WHERE k > 0 UNION SELECT k, at FROM a) SELECT window_start, count(*) AS n FROM TUMBLE(w, at, INTERVAL '1' MINUTE) "
    "GROUP BY window_start EMIT ON WINDOW CLOSE",
}


def at(second: int) -> str:
    return f"2026-01-01 00:{second // 60:02}:{second % 60:02}"


def test_the_slower_part_holds_the_windows_open() -> None:
    world = World.of(*DDL)
    world.start(CLOSED["windows"])
    world.insert("a", {"k": 1, "at": at(10)})
    world.insert("b", {"k": 1, "seen": at(20)})
    world.insert("a", {"k": 1, "at": at(90)})
    assert world.drain() == []
    world.insert("b", {"k": 1, "seen": at(61)})
    assert world.drain() == []
    world.insert("a", {"k": 1, "at": at(30)})
    assert world.drain() == [], "behind the watermark of its own table, though the window is open"
    world.insert("b", {"k": 2, "seen": at(62)})
    assert [(row["n"], delta) for row, delta in world.drain()] == [(2, 1)]
    world.insert("a", {"k": 1, "at": at(700)})
    world.insert("b", {"k": 1, "seen": at(122)})
    assert [(row["n"], delta) for row, delta in world.drain()] == [(3, 1)]


@pytest.mark.parametrize("name", CLOSED)
def test_what_closes_is_what_the_batch_gives(name: str) -> None:
    """Rows of both tables out of order, none of them late; at the end the watermark passes all of them."""
    chance = random.Random(name)
    world = World.of(*DDL)
    world.start(CLOSED[name])
    for second in range(0, 300, 7):
        table, time, delay = chance.choice([("a", "at", 5), ("b", "seen", 2)])
        row: Row = {"k": chance.choice([0, 1, None]), time: at(max(0, second - chance.randrange(delay)))}
        world.insert(table, row)
        world.drain()
    expected = world.recomputed(CLOSED[name])
    world.insert("a", {"k": 0, "at": at(1200)})
    world.insert("b", {"k": 0, "seen": at(1200)})
    world.drain()
    assert expected
    assert world.table() == expected


def test_streams_get_their_watermarks_by_what_is_above_the_union() -> None:
    world = World.of(*DDL)
    grouped = "SELECT window_start, count() AS n FROM tumble(u, t, 1m) GROUP BY window_start EMIT AFTER WATERMARK"
    world.start(f"{STREAMS}{grouped}")
    for second in (10, 70, 130):
        world.insert("s", {"k": 1, "t": at(second)})
        world.insert("r", {"k": 1, "u": at(second)})
    assert [(row["n"], delta) for row, delta in world.drain()] == [(2, 1)]
    joined = f"{STREAMS}SELECT u.k FROM u JOIN s ON u.k = s.k AND date_diff_within(10s, u.t, s.t)"
    assert "unbounded" not in world.explain(joined)
    assert "unbounded" not in world.explain(WINDOWS)


@pytest.mark.parametrize(
    ("union", "reason"),
    [
        ("SELECT k, at FROM a UNION ALL SELECT k, at FROM bare", "SELECT 2 of the UNION gives no column with"),
        (
            "SELECT k, at FROM a UNION ALL SELECT k, NULL::TIMESTAMPTZ FROM b",
            "SELECT 2 of the UNION gives no column with",
        ),
        (
            "SELECT at, at + INTERVAL '1' DAY * k FROM a UNION ALL SELECT seen - INTERVAL '1' DAY * k, seen FROM b",
            "in different columns: column 1 of SELECT 1, column 2 of SELECT 2",
        ),
        ("SELECT at, at AS k FROM a EXCEPT SELECT seen, seen FROM b", "rows can be taken back"),
    ],
)
def test_a_union_without_a_watermark_in_common_says_why(union: str, reason: str) -> None:
    query = f"WITH u AS ({union}) SELECT window_start, count(*) FROM TUMBLE(u, at, INTERVAL '1' MINUTE) GROUP BY 1"
    with pytest.raises(Unsupported, match="never close") as refused:
        World.of(*DDL).plan(f"{query} EMIT ON WINDOW CLOSE")
    assert reason in refused.value.what


def test_the_sessions_of_such_a_union_say_why_too() -> None:
    query = "SELECT k, count(*) FROM SESSION(u, at, INTERVAL '9' SECOND) GROUP BY k, window_start, window_end"
    with pytest.raises(Unsupported, match="SELECT 2 of the UNION gives no column with a watermark"):
        World.of(*DDL).plan(
            f"WITH u AS (SELECT k, at FROM a UNION ALL SELECT k, at FROM bare) {query} EMIT ON WINDOW CLOSE"
        )
