"""A view that three others read, all in one pack: exact, though the runner is killed and a reader is dropped."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dovetail.broker.address import BrokerAddress
from dovetail.broker.topic_shapes import TopicAdmin, TopicShape
from dovetail.runtime.settings import Settings
from dovetail.services.session import Rows, Session
from dovetail.services.session.verification.verify import verify
from dovetail.sql.catalog import Catalog, What
from dovetail.sql.syntax.statements import Drop
from tests.spark.packing.test_packs import WITHIN_S, packed_with
from tests.spark.rescaling.test_rescale import KEYS, Load, Row, current_rows
from tests.spark.running import Running, killed, runners_over

pytestmark = pytest.mark.services

VIEWS = {
    "shared_join": "SELECT o.id AS id, o.user_id AS user_id, u.name AS name"
    " FROM orders AS o LEFT JOIN users AS u ON o.user_id = u.id",
    "shared_named": "SELECT user_id, name, count(*) AS n FROM shared_join GROUP BY user_id, name",
    "shared_last": "SELECT user_id, max(id) AS last FROM shared_join GROUP BY user_id",
    "shared_dropped": "SELECT name, min(id) AS first FROM shared_join GROUP BY name",
}


@pytest.fixture
def runners(tmp_path: Path, broker: str) -> Iterator[Callable[..., Running]]:
    with runners_over(tmp_path, broker, BUCKETS=2, PACK_AFTER_S=6, PACK_ROWS_PER_S=100_000) as start:
        yield start


def test_readers_of_one_view_are_exact_in_one_pack(
    runners: Callable[..., Running], broker: str, topics: Callable[..., str]
) -> None:
    users, orders = topics("users", partitions=2), topics("orders", partitions=2)
    runner = runners()
    runner.create(f"CREATE TABLE users (id BIGINT PRIMARY KEY, name VARCHAR) WITH (topic = '{users}')")
    runner.create(f"CREATE TABLE orders (id BIGINT, user_id BIGINT) APPEND ONLY WITH (topic = '{orders}')")
    for name, select in VIEWS.items():
        assert TopicAdmin(BrokerAddress(broker), WITHIN_S).create(name, TopicShape(2))
        runner.create(f"CREATE MATERIALIZED VIEW {name} AS {select}")
    load = Load(broker, users, orders)
    load.go_on(600)
    for name in VIEWS:
        runner.wait(name, packed_with(len(VIEWS) - 1), WITHIN_S)

    load.go_on(3000)
    killed(runner)
    load.go_on(300)
    again = runners()
    await_exact(again, broker, load)

    again.catalog.drop(Drop(What.VIEW, "shared_dropped"), now_ms=3)
    load.go_on(300)
    await_exact(again, broker, load)
    assert_answered(again, broker)
    assert again.stop() == 0
    assert named(broker) == load.counted


def named(broker: str) -> Counter[Row]:
    return current_rows(broker, "shared_named", ("user_id", "name", "n"))


def await_exact(runner: Running, broker: str, load: Load) -> None:
    """Wait until what the readers have written adds up to what was sent."""
    newest = {order * 7 % (KEYS + 5): order for order in range(load.sent)}
    last = Counter[Row](dict.fromkeys(newest.items(), 1))
    deadline_s = time.monotonic() + WITHIN_S
    while named(broker) != load.counted or current_rows(broker, "shared_last", ("user_id", "last")) != last:
        assert runner.process.poll() is None, runner.log.read_text()[-3000:]
        assert time.monotonic() < deadline_s, runner.log.read_text()[-3000:]
        time.sleep(0.5)


def assert_answered(runner: Running, broker: str) -> None:
    """``dovetail verify``, WHY and WHY NOT of what reads the view name the records of its topic."""
    with Session(Settings(), Catalog.open(runner.url), BrokerAddress(broker)) as session:
        for name in ("shared_join", "shared_named", "shared_last"):
            assert verify(session.context, name).holds
        [found] = session.run("WHY shared_last WHERE user_id = 7")
        assert isinstance(found, Rows)
        streams = Counter(row["stream"] for row in found.table.to_pylist())
        assert set(streams) - {"shared_last"} == {"shared_join"}
        [missing] = session.run("WHY NOT shared_last WHERE user_id = 4711")
        assert isinstance(missing, Rows)
        assert [row["stream"] for row in missing.table.to_pylist()] == ["shared_join"]
