"""What is done to one member of a pack does not touch the others: one stack, one pack, one thing after the other."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from dovetail.broker.address import BrokerAddress
from dovetail.broker.topic_shapes import TopicAdmin, TopicShape
from dovetail.changelog.errors import UnknownName
from dovetail.changelog.schema import WIRE_DELTA
from dovetail.services.session import Rows, Session
from dovetail.services.stack import temporary_stack
from dovetail.sql.catalog import Actual, Query
from tests.spark.kafka import Value, made_again, send, values

pytestmark = pytest.mark.services

WITHIN_S = 240.0
AFTER_S = 3
STATE_BYTES = 1 << 20
KEYS = 7
STREAMS = """
CREATE STREAM orders (id int64, k int64);
CREATE STREAM clicks (id int64, k int64);
CREATE STREAM notes (id int64, k int64, said string);
CREATE TABLE ticks (k INT, at TIMESTAMP, WATERMARK FOR at AS at) APPEND ONLY;
CREATE TABLE tocks (k INT, at TIMESTAMP, WATERMARK FOR at AS at) APPEND ONLY;
CREATE STREAM prices (k int64, price int64) PRIMARY KEY (k) SETTINGS mode = 'versioned_kv';
"""
VIEWS = {
    "pm_backed": "SELECT k, count() AS n FROM orders GROUP BY k",
    "pm_altered": "SELECT k, max(id) AS n FROM orders GROUP BY k",
    "pm_replaced": "SELECT k, min(id) AS n FROM orders GROUP BY k",
    "pm_priced": "SELECT o.id AS id, p.price AS price FROM orders AS o JOIN table(prices) AS p ON o.k = p.k",
    "pm_near": "SELECT a.k AS k FROM ticks AS a JOIN tocks AS b ON a.k = b.k"
    " AND a.at BETWEEN b.at AND b.at + INTERVAL '1 MINUTE'",
    "pm_clicked": "SELECT k, count() AS n FROM clicks GROUP BY k",
    "pm_grown": "SELECT a.id AS id, b.id AS other FROM notes AS a JOIN notes AS b ON a.k = b.k AND a.said = b.said",
}
SETTINGS = {"pm_near": ", late_topic = 'pm_lates'"}


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("members")
    limits = {"pack_after_s": AFTER_S, "pack_state_bytes": STATE_BYTES, "buckets": 2}
    with (
        temporary_stack(folder, ("kafka", "spark"), start_timeout_s=240.0, broker_wait_s=10, **limits) as stack,
        Session.open(stack.connected_settings()) as opened,
    ):
        yield opened


class Orders:
    """Orders that are sent to the stream, and what views over them come to."""

    def __init__(self, broker: str) -> None:
        self._broker = broker
        self.sent = 0

    def go_on(self, rows: int = 50) -> None:
        numbers = range(self.sent, self.sent + rows)
        orders: list[Value] = [{"id": n, "k": n % KEYS} for n in numbers]
        send(self._broker, "orders", orders)
        self.sent += rows

    def by_key(self, come_to: Callable[[list[int]], int]) -> Counter[tuple[object, ...]]:
        return Counter({(k, come_to(list(range(k, self.sent, KEYS)))): 1 for k in range(min(KEYS, self.sent))})


def query_of(session: Session, name: str) -> Query:
    return session.context.catalog.query(name)


def beside(query: Query) -> set[str]:
    return set(query.progress.get("packed_with", ()))


def wait(session: Session, name: str, reached: Callable[[Query], bool]) -> Query:
    deadline_s = time.monotonic() + WITHIN_S
    while not reached(query := query_of(session, name)):
        logged = Path(session.context.settings.data_dir) / "logs" / "spark.log"
        assert time.monotonic() < deadline_s, f"{query}\n{logged.read_text()[-3000:]}"
        time.sleep(0.2)
    return query


def packed(session: Session, names: set[str]) -> None:
    """Wait until these, and no others, share a query."""
    for name in names:
        wait(session, name, lambda query: query.actual is Actual.RUNNING and {query.name, *beside(query)} == names)


def current_rows(broker: str, topic: str, *columns: str) -> Counter[tuple[object, ...]]:
    rows: Counter[tuple[object, ...]] = Counter()
    for value in values(broker, topic):
        rows[tuple(value[column] for column in columns)] += int(str(value.get(WIRE_DELTA, 1)))
    return +rows


def until_equal(found: Callable[[], object], expected: object) -> None:
    deadline_s = time.monotonic() + WITHIN_S
    while (now := found()) != expected:
        assert time.monotonic() < deadline_s, (now, expected)
        time.sleep(0.3)


def test_whatever_is_done_to_a_member_the_others_go_on(session: Session, tmp_path: Path) -> None:
    broker = session.context.brokers.servers
    session.run(STREAMS)
    send(broker, "prices", [{"k": k, "price": 10 * k} for k in range(KEYS)], [{"k": k} for k in range(KEYS)])
    orders = Orders(broker)
    for name, select in VIEWS.items():
        more = SETTINGS.get(name, "")
        session.run(f"CREATE MATERIALIZED VIEW {name} AS {select} SETTINGS seek_to = 'earliest'{more}")
    orders.go_on()
    session.run("INSERT INTO ticks VALUES (1, '2024-01-01 00:00:30')")
    packed(session, set(VIEWS))

    def counted(*names: str) -> None:
        come_to: dict[str, Callable[[list[int]], int]] = {"pm_backed": len, "pm_altered": max, "pm_replaced": min}
        for name in names:
            until_equal(partial(current_rows, broker, name, "k", "n"), orders.by_key(come_to[name]))

    # A row behind the watermark of before; a static table; and a record that nobody can use.
    session.run("INSERT INTO ticks VALUES (2, '2024-01-01 00:00:29')")
    until_equal(partial(in_topic, broker, "pm_lates", "k"), [2])
    send(broker, "orders", [b"no json"])
    orders.go_on()
    until_equal(lambda: current_rows(broker, "pm_priced", "id", "price").total(), orders.sent)
    counted("pm_backed", "pm_altered", "pm_replaced")
    for name in ("pm_backed", "pm_altered", "pm_replaced", "pm_priced"):
        until_equal(partial(dead_letters, session, name), 1)
    send(broker, "clicks", [{"id": n, "k": n % 3} for n in range(30)])
    until_equal(lambda: current_rows(broker, "pm_clicked", "k", "n"), Counter({(k, 10): 1 for k in range(3)}))
    prices = {(n, 10 * (n % KEYS)): 1 for n in range(orders.sent)}
    assert current_rows(broker, "pm_priced", "id", "price") == Counter(prices)

    # Backed up: it leaves, and is not packed again.
    session.run(f"BACKUP VIEW pm_backed TO '{tmp_path / 'backup'}'")
    there = set(VIEWS) - {"pm_backed"}
    packed(session, there)
    orders.go_on()
    counted("pm_backed", "pm_altered", "pm_replaced")

    # Altered: it leaves, and has other buckets.
    session.run("ALTER VIEW pm_altered SET (buckets = 3)")
    there -= {"pm_altered"}
    packed(session, there)
    assert query_of(session, "pm_altered").progress["buckets"] == 3

    # Replaced by another one.
    session.run(
        "CREATE OR REPLACE MATERIALIZED VIEW pm_replaced AS SELECT k, sum(id) AS n FROM orders GROUP BY k"
        " SETTINGS seek_to = 'earliest' WITH DATA"
    )
    orders.go_on()
    counted("pm_backed", "pm_altered")

    # The topic that one reads is another one: that one fails, and says why.
    made_again(broker, "clicks")
    send(broker, "clicks", [{"id": 1, "k": 1}])
    failed = wait(session, "pm_clicked", lambda query: query.actual is Actual.FAILED)
    assert "clicks" in failed.error
    there -= {"pm_clicked"}

    # One outgrows the pack.
    send(broker, "notes", [{"id": n, "k": n, "said": "x" * 1000} for n in range(3000)])
    grown = wait(session, "pm_grown", lambda query: query.actual is Actual.RUNNING and not beside(query))
    assert Path(grown.checkpoint).parent.name == "checkpoints"
    until_equal(lambda: current_rows(broker, "pm_grown", "id", "other"), Counter({(n, n): 1 for n in range(3000)}))
    there -= {"pm_grown"}

    # Those that were altered and replaced join the pack that is there.
    packed(session, there | {"pm_altered"})
    orders.go_on()
    counted("pm_backed", "pm_altered")
    until_equal(partial(current_rows, broker, "pm_replaced", "k", "n"), orders.by_key(sum))
    assert in_topic(broker, "pm_lates", "k") == [2]

    # The topic that one writes to is gone: it waits for that, alone; what is written once it is back is in it.
    topics = TopicAdmin(BrokerAddress(broker), 10.0)
    topics.delete(["pm_priced"])
    before = orders.sent
    orders.go_on()
    gone = 'the output topic "pm_priced" is gone'
    wait(session, "pm_priced", lambda query: query.actual is Actual.RECOVERING and gone in query.error)
    counted("pm_backed", "pm_altered")
    assert "pm_priced" not in topics.partitions()
    topics.create("pm_priced", TopicShape(1))
    until_equal(partial(made_and_written, broker, "pm_priced", orders.sent - before), True)


def made_and_written(broker: str, topic: str, rows: int) -> bool:
    with suppress(UnknownName):
        return len(values(broker, topic)) >= rows
    return False


def in_topic(broker: str, topic: str, column: str) -> list[object]:
    with suppress(UnknownName):
        return [value[column] for value in values(broker, topic)]
    return []


def dead_letters(session: Session, name: str) -> int:
    [result] = session.run(f"SELECT * FROM table({name}.dead_letter)")
    assert isinstance(result, Rows)
    return int(result.table.num_rows)
