"""Views over views in memory: each is told how far the one before it has come, and what it makes is what one query over
the records gives.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence

import duckdb
import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conformance.case import Wait
from tests.conformance.memory import MemoryHost, _Joining
from tests.conformance.sql_engine import SqlEngine
from tests.sql.world import Row, World
from tests.tries import tries

NOON = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
RIDES = "CREATE TABLE rides (k INT, at TIMESTAMPTZ, WATERMARK FOR at AS at - INTERVAL '5 SECONDS') APPEND ONLY"
TENS = (
    "CREATE MATERIALIZED VIEW tens AS SELECT window_start AS opened, window_end AS closed, k, count(*) AS n "
    "FROM TUMBLE(rides, at, INTERVAL '10 SECONDS') GROUP BY window_start, window_end, k EMIT ON WINDOW CLOSE"
)
MINUTES = (
    "CREATE MATERIALIZED VIEW minutes AS SELECT window_start AS minute, k, sum(n) AS n "
    "FROM TUMBLE(tens, opened, INTERVAL '1 MINUTE') GROUP BY window_start, k EMIT ON WINDOW CLOSE"
)
SHARES = (
    "CREATE MATERIALIZED VIEW shares AS SELECT t.opened AS opened, m.minute AS minute, t.k AS k, t.n AS n, m.n AS of "
    "FROM tens AS t JOIN minutes AS m ON t.k = m.k AND t.opened BETWEEN m.minute AND m.minute + INTERVAL '50 SECONDS'"
)
FIVES = (
    "SELECT window_end AS until, k, sum(n) AS n FROM TUMBLE(shares, opened, INTERVAL '5 MINUTES') "
    "GROUP BY window_end, k EMIT ON WINDOW CLOSE"
)
CHAIN = (RIDES, TENS, MINUTES, SHARES)
TIMES = {"tens": "opened", "minutes": "minute", "shares": "opened"}
ONE_QUERY = """
    WITH counted AS (
        SELECT time_bucket(INTERVAL '5 minutes', moment) AS begun, k, count(*) AS n FROM rides GROUP BY ALL
    )
    SELECT strftime(begun + INTERVAL '5 minutes', '%Y-%m-%d %H:%M:%S.%f'), k, n FROM counted
"""
Ride = tuple[int, int, int]
"""Key, seconds since the one before it, and seconds that it comes too late."""


@st.composite
def rides(draw: st.DrawFn) -> list[list[Ride]]:
    one = st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(0, 5))
    return draw(st.lists(st.lists(one, max_size=12), max_size=6))


@settings(max_examples=tries(15))
@given(parts=rides(), batch=st.sampled_from([None, 1, 3]), restarted=st.booleans())
def test_a_chain_gives_what_one_query_gives(parts: list[list[Ride]], batch: int | None, restarted: bool) -> None:
    world = World(SqlEngine(MemoryHost(batch_records=batch)))
    for statement in CHAIN:
        world.engine.create(statement)
    world.start(FIVES)
    rows: list[Row] = []
    for part in parts:
        fresh = timed(part, rows)
        rows += fresh
        world.insert("rides", *fresh)
        world.drain()
        for name in TIMES if restarted else ():
            world.engine.host.restart(name)
    world.engine.wait(Wait.WATERMARK)
    world.drain()

    assert world.table() == expected(rows)
    for name, time_of in TIMES.items():
        in_time(world, name, time_of)
        assert late(world, name) == 0


def timed(part: Sequence[Ride], before: Sequence[Row]) -> list[Row]:
    now, rows = 5 + 40 * len(before), []
    for k, gap, behind in part:
        now += gap
        rows.append({"k": k, "at": text(NOON + dt.timedelta(seconds=now - behind))})
    return rows


def text(moment: dt.datetime) -> str:
    return moment.replace(tzinfo=None).isoformat(" ", "milliseconds")


def expected(rows: Sequence[Row]) -> Counter[tuple[object, ...]]:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE rides (k INT, moment TIMESTAMP)")
    for row in rows:
        connection.execute("INSERT INTO rides VALUES (?, ?)", [row["k"], row["at"]])
    return Counter(connection.execute(ONE_QUERY).fetchall())


def in_time(world: World, view: str, time_of: str) -> None:
    """No row is behind a heartbeat before it."""
    heartbeat_ms = -1
    for record in world.engine.host.records(view):
        if record.value is None:
            assert record.timestamp_ms > heartbeat_ms
            heartbeat_ms = record.timestamp_ms
        else:
            moment = dt.datetime.fromisoformat(str(orjson.loads(record.value)[time_of])).replace(tzinfo=dt.UTC)
            assert round(moment.timestamp() * 1000) >= heartbeat_ms


def late(world: World, view: str) -> int:
    host = world.engine.host
    assert isinstance(host, MemoryHost)
    running = host.running[view]
    assert isinstance(running, _Joining)
    return running.query.counters["late"]
