"""A query that goes on with another number of buckets: nothing lost, nothing twice, no record read again."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dovetail.changelog.schema import WIRE_DELTA
from dovetail.sql.catalog import Actual, Query
from tests.spark.kafka import send, values
from tests.spark.running import Running, killed, runners_over

pytestmark = pytest.mark.services

KEYS = 40
WITHIN_S = 400.0
"""Three starts of a runner, and two states that are read and written."""
Row = tuple[object, ...]


class Load:
    """Rows for both sides of a join and an aggregate over it, and what they come to."""

    def __init__(self, broker: str, users: str, orders: str) -> None:
        self._broker, self._users, self._orders = broker, users, orders
        self._names: dict[int, str] = {}
        self._of_user: Counter[int] = Counter()
        self.sent = 0

    def go_on(self, rows: int) -> None:
        """Users get other names, orders come: some of users that are not there yet."""
        renamed = [(n % KEYS, f"name {self.sent + n}") for n in range(0, rows, 3)]
        bought = [(self.sent + n) * 7 % (KEYS + 5) for n in range(rows)]
        users = [{"id": user, "name": name} for user, name in renamed]
        send(self._broker, self._users, users, [{"id": user} for user, _ in renamed])
        send(self._broker, self._orders, [{"id": self.sent + n, "user_id": user} for n, user in enumerate(bought)])
        self._names |= dict(renamed)
        self._of_user.update(bought)
        self.sent += rows

    @property
    def counted(self) -> Counter[Row]:
        """``SELECT user_id, name, count(*)``, every row once."""
        return Counter({(user, self._names.get(user), count): 1 for user, count in self._of_user.items()})


def current_rows(broker: str, topic: str, columns: tuple[str, ...]) -> Counter[Row]:
    """What a changelog adds up to; read from its beginning no row stands fewer than zero times."""
    rows: Counter[Row] = Counter()
    for value in values(broker, topic):
        row = tuple(value[column] for column in columns)
        rows[row] += int(str(value[WIRE_DELTA]))
        assert rows[row] >= 0, row
    return +rows


def alter(runner: Running, view: str, buckets: int) -> None:
    """As ALTER VIEW does it: the other settings stay."""
    relation = runner.catalog.get(view)
    text, _, settings = relation.ddl.partition(" SETTINGS ")
    others = [one for one in settings.split(", ") if one and not one.startswith("buckets")]
    runner.catalog.redefine(relation, f"{text} SETTINGS {', '.join([*others, f'buckets = {buckets}'])}")


def rescaled_to(buckets: int) -> Callable[[Query], bool]:
    return lambda query: query.actual is Actual.RUNNING and query.progress.get("buckets") == buckets


def has_read(rows: int) -> Callable[[Query], bool]:
    return lambda query: sum(sum(of.values()) for of in query.progress.get("offsets", {}).values()) >= rows


@pytest.fixture
def runners(tmp_path: Path, broker: str) -> Iterator[Callable[[], Running]]:
    with runners_over(tmp_path, broker, BUCKETS=2) as start:
        yield start


def counted(view: str) -> str:
    """Its changelog goes to a topic of its name: tests of one broker have views of different names."""
    return (
        f"CREATE MATERIALIZED VIEW {view} AS SELECT o.user_id AS user_id, u.name AS name, count(*) AS n"
        " FROM orders AS o LEFT JOIN users AS u ON o.user_id = u.id GROUP BY o.user_id, u.name"
    )


def test_under_load_and_killed_in_the_midst(
    runners: Callable[[], Running], broker: str, topics: Callable[..., str], tmp_path: Path
) -> None:
    users, orders = topics("users", partitions=2), topics("orders", partitions=2)
    runner = runners()
    runner.create(f"CREATE TABLE users (id BIGINT PRIMARY KEY, name VARCHAR) WITH (topic = '{users}')")
    runner.create(f"CREATE TABLE orders (id BIGINT, user_id BIGINT) APPEND ONLY WITH (topic = '{orders}')")
    runner.create(counted("rescaled"))
    load = Load(broker, users, orders)
    load.go_on(3000)
    runner.wait("rescaled", has_read(1000), WITHIN_S)

    alter(runner, "rescaled", 3)
    load.go_on(3000)
    runner.wait("rescaled", rescaled_to(3), WITHIN_S)
    load.go_on(300)

    alter(runner, "rescaled", 1)
    unfinished = tmp_path / "checkpoints" / "1-rescaled.2"
    runner.wait("rescaled", lambda _: unfinished.exists(), WITHIN_S)
    killed(runner)
    assert Path(runner.catalog.query("rescaled").checkpoint).name == "1-rescaled.1"
    load.go_on(300)
    again = runners()
    again.wait("rescaled", rescaled_to(1), WITHIN_S)
    load.go_on(300)
    again.wait("rescaled", has_read(load.sent + load.sent // 3), WITHIN_S)
    assert current_rows(broker, "rescaled", ("user_id", "name", "n")) == load.counted
    # What a batch of one bucket has left is not in the checkpoint at once, and here the copy of it is lost.
    killed(again)
    shutil.rmtree(tmp_path / "state-copy")
    alter(again, "rescaled", 2)
    last = runners()
    query = last.wait("rescaled", rescaled_to(2), WITHIN_S)
    load.go_on(300)
    last.wait("rescaled", has_read(load.sent + load.sent // 3), WITHIN_S)

    assert {path.name for path in (tmp_path / "checkpoints").iterdir()} == {"catalogs", Path(query.checkpoint).name}
    assert last.stop() == 0
    assert current_rows(broker, "rescaled", ("user_id", "name", "n")) == load.counted
    assert "rescaled from 3 to 1 buckets" in again.log.read_text()
    assert "rescaled from 1 to 2 buckets" in last.log.read_text()


def test_state_that_is_not_all_in_memory(
    runners: Callable[[], Running], broker: str, topics: Callable[..., str], tmp_path: Path
) -> None:
    """A bucket is cut by the hash that its portions are cut by as well: rows of one portion go to several buckets."""
    users, orders = topics("users", partitions=2), topics("orders", partitions=2)
    runner = runners()
    runner.create(f"CREATE TABLE users (id BIGINT PRIMARY KEY, name VARCHAR) WITH (topic = '{users}')")
    runner.create(f"CREATE TABLE orders (id BIGINT, user_id BIGINT) APPEND ONLY WITH (topic = '{orders}')")
    hybrid = "default_hash_join = 'hybrid', default_hash_table = 'hybrid', max_hot_keys = 4"
    runner.create(f"{counted('spilled')} SETTINGS {hybrid}")
    load = Load(broker, users, orders)
    for buckets in (3, 1):
        load.go_on(900)
        runner.wait("spilled", has_read(load.sent), WITHIN_S)
        alter(runner, "spilled", buckets)
        load.go_on(300)
        runner.wait("spilled", rescaled_to(buckets), WITHIN_S)
    load.go_on(300)
    runner.wait("spilled", has_read(load.sent + load.sent // 3), WITHIN_S)
    assert hybrid in runner.catalog.get("spilled").ddl
    assert runner.stop() == 0
    assert current_rows(broker, "spilled", ("user_id", "name", "n")) == load.counted
