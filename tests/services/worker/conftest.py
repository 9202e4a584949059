"""A world for lookup queries: a broker, a catalog, a SQLite database to look up in, and processes that answer."""

from __future__ import annotations

import itertools
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka import Producer

from dovetail.broker import clients
from dovetail.broker import topics as topic_admin
from dovetail.broker.address import BrokerAddress
from dovetail.broker.topic_shapes import TopicAdmin
from dovetail.changelog.errors import StackError
from dovetail.runtime.settings import Settings
from dovetail.services.session import Session
from dovetail.services.session.input_progress import InputProgress
from dovetail.services.stack.temporary import temporary_settings
from dovetail.services.worker.supervisor.child_process import Child
from dovetail.sql.catalog import Actual, Catalog, Query
from dovetail.sql.catalog.entries import queries_of
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateView
from tests.children import children
from tests.spark.kafka import messages

_WAIT_S = 60.0
_POLL_S = 0.05
_numbers = itertools.count(1)


class World:
    """Names are suffixed by ``number``, so that tests share a broker. ``changed`` overrides settings."""

    def __init__(self, broker: str, folder: Path, **changed: object) -> None:
        self.number = next(_numbers)
        self.broker = broker
        self.folder = folder
        patience = {"worker_session_timeout_s": 6.0, "worker_run_records": 500, "source_wait_s": 20.0}
        self.settings: Settings = temporary_settings(folder, **(patience | {"brokers": broker} | changed))
        self.catalog = Catalog.open(self.settings.catalog_address)
        self.session = Session(self.settings, self.catalog, BrokerAddress(broker))
        self.topics = TopicAdmin(BrokerAddress(broker), 10.0)
        self.database = folder / "source.db"
        self._children: list[Child] = []

    # -- what there is

    def execute(self, text: str) -> None:
        self.session.execute(parse_one(text))

    def fill(self, table: str, rows: Iterable[tuple[Any, ...]], columns: str) -> None:
        with sqlite3.connect(self.database) as connection:
            connection.execute(f"CREATE TABLE IF NOT EXISTS {table} ({columns})")
            marks = ", ".join("?" * (columns.count(",") + 1 - columns.count("PRIMARY KEY (")))
            connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", rows)

    def view(self, text: str) -> Query:
        """A materialized view in the catalog, with its topics; whoever runs, runs it."""
        statement = parse_one(text)
        assert isinstance(statement, CreateView)
        plan = plan_query(statement.name, statement, self.catalog)
        *upstream, query = queries_of(plan, text)
        topic_admin.ensure(clients.admin(BrokerAddress(self.broker)), {made.topic: 1 for made in (*upstream, query)})
        _, made = self.catalog.create(statement, now_ms=0, uses=plan.reads, query=query, upstream=upstream)
        assert made is not None
        return made

    def send(self, topic: str, values: Iterable[Mapping[str, Any]], key: str = "k") -> None:
        producer = Producer(
            {
                "bootstrap.servers": self.broker,
                "linger.ms": 5,
                "partitioner": "murmur2_random",
                "compression.type": "lz4",
            }
        )
        for value in values:
            producer.produce(topic, orjson.dumps(value), orjson.dumps({key: value.get(key)}))
            producer.poll(0)
        assert producer.flush(30) == 0

    @contextmanager
    def load(self, topic: str, keys: int, chunk: int, pause_s: float, key: str = "k") -> Iterator[Callable[[], int]]:
        """Records {n, k} written all the time, k being n modulo ``keys``; how many, once the block has ended."""
        stopped, written = threading.Event(), [0]

        def write() -> None:
            while not stopped.wait(pause_s):
                numbers = range(written[0], written[0] + chunk)
                self.send(topic, [{"n": n, "k": n % keys} for n in numbers], key)
                written[0] += chunk

        writer = threading.Thread(target=write)
        writer.start()
        try:
            yield lambda: written[0]
        finally:
            stopped.set()
            writer.join()

    def send_bytes(self, topic: str, value: bytes) -> None:
        producer = Producer({"bootstrap.servers": self.broker})
        producer.produce(topic, value)
        assert producer.flush(30) == 0

    # -- who answers

    def start(self, query: str, worker: str = "w1") -> Child:
        files = self.folder / "workers" / worker
        child = Child(query, worker, files, self.settings.as_environment(), children())
        self._children.append(child)
        return child

    def kill(self, child: Child) -> None:
        with suppress(ProcessLookupError):
            child.signal(signal.SIGKILL)
        self.until(lambda: child.ended() is not None)

    def stop(self, child: Child) -> int:
        self.until(lambda: child.stop(20.0))
        code = child.ended()
        assert code is not None
        return code

    def close(self) -> None:
        for child in self._children:
            self.kill(child)
            child.last_words()
        self.catalog.close()

    # -- what comes of it

    def until(self, holds: Callable[[], bool], wait_s: float = _WAIT_S) -> None:
        deadline = time.monotonic() + wait_s
        while not holds():
            if time.monotonic() > deadline:
                words = "\n".join(child.last_words() for child in self._children)
                raise AssertionError(f"it did not come to hold within {wait_s:g} s\n{words}")
            time.sleep(_POLL_S)

    def drained(self, query: str, topic: str) -> None:
        """Wait until the query has answered all that ``topic`` holds."""
        ends = {topic: self.topics.quiescent_ends(topic)}

        def reached() -> bool:
            now = self.catalog.query(query)
            if now.actual is Actual.FAILED:
                raise StackError(now.error)
            return InputProgress.of(now).includes(ends)

        self.until(reached)

    def values(self, topic: str) -> list[dict[str, Any]]:
        """As a read_committed reader sees them."""
        return [orjson.loads(message.value() or b"null") for message in messages(self.broker, topic)]


@pytest.fixture
def world(broker: str, tmp_path: Path) -> Iterator[World]:
    made = World(broker, tmp_path)
    yield made
    made.close()
