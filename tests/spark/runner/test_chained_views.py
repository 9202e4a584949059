"""Views over views in a real runner: windows over windows close, and a reader never sees a row behind a heartbeat."""

from __future__ import annotations

import datetime as dt
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import orjson
import pytest
from confluent_kafka import Message, Producer

from dovetail.broker.address import BrokerAddress
from dovetail.broker.topic_shapes import TopicAdmin, TopicShape
from dovetail.changelog.formats.heartbeat import HEADER
from dovetail.sql.catalog import Actual
from tests.spark.kafka import messages
from tests.spark.running import Running, killed, runners_over

pytestmark = pytest.mark.services

NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
SECONDS, KEYS, PARTITIONS = 300, 3, 2
WITHIN_S = 400.0
VIEWS = {
    "chained_tens": "SELECT window_start AS opened, window_end AS closed, k, count(*) AS n "
    "FROM TUMBLE(rides, at, INTERVAL '10 SECONDS') GROUP BY window_start, window_end, k EMIT ON WINDOW CLOSE",
    "chained_minutes": "SELECT window_start AS minute, k, sum(n) AS n "
    "FROM TUMBLE(chained_tens, opened, INTERVAL '1 MINUTE') GROUP BY window_start, k EMIT ON WINDOW CLOSE",
    "chained_shares": "SELECT t.opened AS opened, t.k AS k, t.n AS n, m.n AS of_minute FROM chained_tens AS t "
    "JOIN chained_minutes AS m ON t.k = m.k AND t.opened BETWEEN m.minute AND m.minute + INTERVAL '50 SECONDS'",
}
EXPECTED = """
    WITH tens AS (
        SELECT time_bucket(INTERVAL '10 seconds', moment) AS opened, k, count(*) AS n FROM rides GROUP BY ALL
    ),
    minutes AS (SELECT time_bucket(INTERVAL '1 minute', opened) AS minute, k, sum(n) AS n FROM tens GROUP BY ALL)
    SELECT strftime(opened, '%Y-%m-%d %H:%M:%S.%f'), t.k, t.n, m.n::BIGINT FROM tens AS t JOIN minutes AS m
    ON t.k = m.k AND minute = time_bucket(INTERVAL '1 minute', opened)
"""
TIMES = {"chained_tens": "opened", "chained_minutes": "minute", "chained_shares": "opened"}


class Rides:
    """A ride every half second, in turn in each partition, each up to 3 s late."""

    def __init__(self, broker: str, topic: str) -> None:
        self._producer = Producer({"bootstrap.servers": broker})
        self._topic = topic
        self.rows: list[tuple[int, dt.datetime]] = []

    def until(self, second: int) -> None:
        for number in range(len(self.rows), 2 * second):
            at = NOON + dt.timedelta(seconds=max(number / 2 - number % 4, 0))
            self.rows.append((number * 7 % KEYS, at))
            value = {"k": self.rows[-1][0], "at": at.replace(tzinfo=None).isoformat(" ")}
            self._producer.produce(self._topic, orjson.dumps(value), partition=number % PARTITIONS)
        assert self._producer.flush(30) == 0

    def end(self) -> None:
        moment = round((NOON + dt.timedelta(hours=1)).timestamp() * 1000)
        for partition in range(PARTITIONS):
            self._producer.produce(self._topic, partition=partition, timestamp=moment)
        assert self._producer.flush(30) == 0


def unpacked(folder: Path) -> list[Path]:
    """The library of RocksDB, which a JVM unpacks for itself."""
    return list((folder / "scratch").rglob("librocksdb*"))


@pytest.fixture
def runners(tmp_path: Path, broker: str) -> Iterator[Callable[[], Running]]:
    with runners_over(tmp_path, broker, BUCKETS=2) as start:
        yield start


def test_windows_over_windows_close_though_the_runner_is_killed(
    runners: Callable[[], Running], broker: str, topics: Callable[..., str], tmp_path: Path
) -> None:
    rides = Rides(broker, topic := topics("rides", partitions=PARTITIONS))
    rides.until(30)
    runner = runners()
    runner.create(
        "CREATE TABLE rides (k INT, at TIMESTAMPTZ, WATERMARK FOR at AS at - INTERVAL '5 SECONDS') APPEND ONLY "
        f"WITH (topic = '{topic}')"
    )
    for name, query in VIEWS.items():
        assert TopicAdmin(BrokerAddress(broker), WITHIN_S).create(name, TopicShape(PARTITIONS))
        runner.create(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    rides.until(SECONDS // 2)
    await_rows(broker, "chained_shares", 1, runner)
    rides.until(SECONDS - 60)
    killed(runner)
    rides.until(SECONDS)
    runner = runners()
    rides.end()

    expected = shares(rides)
    await_rows(broker, "chained_shares", expected.total(), runner)
    assert len(unpacked(tmp_path)) == 1, "what the killed runner left is still there"
    for name in VIEWS:
        assert sum(runner.catalog.query(name).progress["late"].values()) == 0
    assert runner.stop() == 0
    assert unpacked(tmp_path) == []
    assert Counter(tuple(row.values()) for row in rows(broker, "chained_shares")) == expected
    for name, time_of in TIMES.items():
        assert_in_time(messages(broker, name), time_of)


def shares(rides: Rides) -> Counter[tuple[object, ...]]:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE rides (k INT, moment TIMESTAMP)")
    connection.executemany("INSERT INTO rides VALUES (?, ?)", [(k, at.replace(tzinfo=None)) for k, at in rides.rows])
    return Counter(connection.execute(EXPECTED).fetchall())


def rows(broker: str, topic: str) -> list[dict[str, object]]:
    found = (message.value() for message in messages(broker, topic))
    return [orjson.loads(value) for value in found if value is not None]


def await_rows(broker: str, view: str, count: int, runner: Running) -> None:
    deadline = time.monotonic() + WITHIN_S
    while len(rows(broker, view)) < count:
        assert runner.process.poll() is None, runner.log.read_text()[-3000:]
        assert runner.catalog.query(view).actual is not Actual.FAILED, runner.catalog.query(view).error
        assert time.monotonic() < deadline, runner.log.read_text()[-3000:]
        time.sleep(0.2)


def assert_in_time(found: list[Message], time_of: str) -> None:
    """In each partition: no row is behind a heartbeat before it, and the last heartbeat is behind no row."""
    heartbeats: dict[int | None, list[int]] = defaultdict(lambda: [-1])
    for message in found:
        beats = heartbeats[message.partition()]
        if (value := message.value()) is None:
            beats.append(int(dict(message.headers() or ())[HEADER] or b""))
            assert beats[-1] > beats[-2]
        else:
            moment = dt.datetime.fromisoformat(str(orjson.loads(value)[time_of])).replace(tzinfo=dt.UTC)
            assert round(moment.timestamp() * 1000) >= beats[-1]
    assert heartbeats
    assert {beats[-1] for beats in heartbeats.values()} == {max(map(max, heartbeats.values()))}
    assert max(map(max, heartbeats.values())) > NOON.timestamp() * 1000 + 1000 * SECONDS
