"""Goods in MariaDB behind a proxy, a Redis, and lookup queries over them: what the fault tests break."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import orjson
import pymysql
from confluent_kafka import Producer

from dovetail.services.commands.command_codec import Stats
from dovetail.services.worker.supervisor.child_process import Child
from tests.servers import Proxy, Server, mariadb, proxy, redis_server
from tests.services.worker.conftest import World

_GOODS = 40_000
_HOT_KEYS = 100
"""Far fewer than any test asks for, so that Redis is asked all the time."""

Answer = tuple[int, str | None]
"""The number of a record, and the name that was looked up for it."""


def expected(numbers: range, keys: int) -> list[Answer]:
    """What an unbroken run answers to records whose key is their number modulo ``keys``."""
    return [(n, name_of(n % keys)) for n in numbers]


def name_of(key: int) -> str | None:
    """Every fourth key is in no row."""
    return None if key % 4 == 3 or key >= _GOODS else f"name{key}"


def found(world: World, view: str) -> list[Answer]:
    """All that a read_committed reader finds: a record answered twice is there twice."""
    return sorted((row["n"], row["name"]) for row in world.values(view))


@dataclass(frozen=True)
class Goods:
    """A table of its own, the stream of orders, and the view of an order with the name of its good.

    log_start  where the log of the server stood when all this was made
    """

    table: str
    dictionary: str
    orders: str
    view: str
    log_start: int = 0


@dataclass(frozen=True)
class Shop:
    """The servers of one test module. MariaDB writes each statement that it is given to ``log``."""

    database: Server
    between: Proxy
    redis: Server
    log: Path

    # -- what there is

    def prepare(self) -> None:
        """As good as new: whatever a test before has broken."""
        self.between.latency_s = 0.0
        self.database.execute(
            "SET GLOBAL innodb_flush_log_at_trx_commit = 1",
            f"SET GLOBAL general_log_file = '{self.log}'",
            "SET GLOBAL general_log = ON",
        )

    def goods(self, world: World, *, partitions: int = 2, timeout_s: float = 30.0, **settings: float | str) -> Goods:
        """Absence is kept as long as a row: a key that is asked twice was forgotten, or never shared."""
        number = world.number
        made = Goods(f"goods{number}", f"catalogue{number}", f"sold{number}", f"named{number}")
        self.database.execute(
            f"CREATE TABLE shop.{made.table} (id BIGINT PRIMARY KEY, name VARCHAR(40))",
            f"INSERT INTO shop.{made.table} SELECT seq, CONCAT('name', seq) "
            f"FROM shop.seq_0_to_{_GOODS - 1} WHERE seq % 4 <> 3",
        )
        kept = {"negative_ttl": 3600, "timeout_ms": 1000 * timeout_s, "redis_timeout_ms": 5000, **settings}
        cache = f"HYBRID_HASH_CACHE(TTL 3600 PATH 'shop' max_hot_key_count {_HOT_KEYS})"
        listed = ", ".join(f"{name} = {value!r}" for name, value in kept.items())
        world.execute(f"CREATE STREAM {made.orders} (n int, k int) SETTINGS shards = {partitions}")
        world.execute(
            f"CREATE DICTIONARY {made.dictionary} (id int, name string) PRIMARY KEY id SOURCE(MYSQL("
            f"HOST '{self.between.host}' PORT {self.between.port} USER '{self.database.user}' "
            f"PASSWORD '{self.database.password}' DB 'shop' TABLE '{made.table}' TIMEOUT {timeout_s})) "
            f"LAYOUT({cache}) SETTINGS({listed})"
        )
        world.view(
            f"CREATE MATERIALIZED VIEW {made.view} AS SELECT o.n, o.k, g.name FROM {made.orders} AS o "
            f"LEFT JOIN {made.dictionary} AS g ON o.k = g.id SETTINGS join_algorithm = 'direct', seek_to = 'earliest'"
        )
        # Whether the source can be asked at all was tried with some key, which does not count.
        return replace(made, log_start=self.log.stat().st_size)

    # -- what it is asked

    def statements(self, goods: Goods) -> list[list[int]]:
        """The keys of each lookup that the server was asked."""
        lookups = re.compile(rf"FROM `?{goods.table}`?\s+WHERE [^()]* IN \(([^()]*)\)")
        written = self.log.read_bytes()[goods.log_start :].decode()
        return [[int(key) for key in keys.split(",")] for keys in lookups.findall(written)]

    def queried_keys(self, goods: Goods) -> list[int]:
        """Every key as often as the server was asked for it."""
        return sorted(key for keys in self.statements(goods) for key in keys)

    @contextmanager
    def held(self, goods: Goods) -> Iterator[None]:
        """Within the block the server takes lookups and answers none."""
        server = self.database
        with pymysql.connect(host=server.host, port=server.port, user=server.user, password=server.password) as holder:
            holder.cursor().execute(f"LOCK TABLES shop.{goods.table} WRITE")
            yield

    def is_queried(self, goods: Goods) -> bool:
        """Whether a lookup waits for its answer at the server."""
        [(waiting,)] = self.database.rows(
            "SELECT COUNT(*) FROM information_schema.processlist "
            f"WHERE state LIKE 'Waiting for table%' AND info LIKE '%{goods.table}%'"
        )
        return bool(waiting)

    def cached(self) -> int:
        """How many names Redis knows."""
        [(count,)] = self.redis.rows("DBSIZE")
        assert isinstance(count, int)
        return count


@contextmanager
def open_shop(folder: Path) -> Iterator[Shop]:
    with (
        mariadb(folder / "mariadb") as database,
        proxy(database.host, database.port) as between,
        redis_server(folder / "redis") as redis,
    ):
        yield Shop(database, between, redis, folder / "statements.log")


# -- orders, and who answers them


def load(world: World, goods: Goods, keys: int) -> AbstractContextManager[Callable[[], int]]:
    """Orders written all the time, over all partitions; how many there were, once the block has ended."""
    return world.load(goods.orders, keys, chunk=100, pause_s=0.05, key="n")


def send_to(world: World, topic: str, partition: int, orders: Sequence[tuple[int, int]]) -> None:
    """Orders (n, k) into one partition."""
    producer = Producer({"bootstrap.servers": world.broker})
    for n, k in orders:
        producer.produce(topic, orjson.dumps({"n": n, "k": k}), partition=partition)
    assert producer.flush(30) == 0


def answered(world: World, view: str, worker: str | None = None) -> int:
    """How many orders were answered, in committed transactions, by all or by one."""
    progress = world.catalog.query(view).progress
    counts = progress.get("counts", {}) if worker is None else progress.get("by_worker", {}).get(worker, {})
    return int(counts.get("rows_in", 0))


def await_more(world: World, view: str, worker: str | None = None, least: int = 500) -> None:
    """Wait until ``least`` more orders are answered."""
    before = answered(world, view, worker)
    world.until(lambda: answered(world, view, worker) >= before + least)


def holds_partitions(metrics: str, view: str, count: int) -> bool:
    """Whether a process with these metrics has ``count`` partitions of the input."""
    return f'dovetail_worker_partitions{{query="{view}"}} {count:.1f}' in metrics


def figure(child: Child, name: str) -> int:
    """A figure of the only dictionary of a process; 0 while it does not answer."""
    outcome = child.execute(Stats())
    return int(outcome.detail["dictionaries"][0][name]) if outcome.ok else 0
