"""Lookup joins, Kafka to Kafka, exactly once: ``make bench-lookup``.

    python -m benchmarks.lookup [--events 2000000] [--only hot,two,source,shared,redis,latency,memory]

hot      1,000 keys, all in the hot tier of one worker
two      the same with two workers
source   200,000 uniform keys over a hot tier of 10,000, Redis empty at the start, MariaDB as the source
shared   the same with two workers
redis    the keys of source, all in Redis, a hot tier of one key
latency  10,000 events a second held; from produce to a read_committed reader, in ms
memory   the worker's resident memory while it reads 5 M events

An event is JSON of about 80 bytes. A rate is that of the committed input offsets after the first fifth, so the start of
the process is not in it. Machines differ and are noisy: compare figures of one run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import orjson
import psutil
import pyarrow as pa
from confluent_kafka import Producer

from benchmarks.delays import received
from benchmarks.load import create_topics, now_ms, produce
from dovetail.services.session import Session
from dovetail.services.session.dictionaries.system_dictionaries import statistics
from dovetail.services.stack import temporary_stack
from tests.servers.mariadb import mariadb
from tests.servers.process import Server

PARTITIONS = 2
PRODUCTS = 200_000
RATE = 10_000
WARM_UP_S = 10
PIECE = 50_000
FIGURES = ("query_count", "hot_hits", "cold_hits", "misses", "source_statements", "source_keys")


@dataclass
class World:
    """A running stack with a database of products."""

    session: Session
    database: Server
    events: int
    seconds: int

    @property
    def brokers(self) -> str:
        return self.session.context.brokers.servers

    def dictionary(self, name: str, hot: int) -> None:
        server = self.database
        self.session.run(
            f"CREATE DICTIONARY {name} (id string, name string, price float64) PRIMARY KEY id SOURCE(MYSQL(HOST"
            f" '{server.host}' PORT {server.port} USER '{server.user}' PASSWORD '{server.password}' DB 'shop' TABLE"
            f" 'products')) LAYOUT(HYBRID_HASH_CACHE(TTL 3600 PATH 'bench' MAX_HOT_KEY_COUNT {hot}))"
        )

    def stream(self, name: str, keys: int, events: int) -> None:
        """A stream with ``events`` records over ``keys`` uniform products."""
        create_topics(self.brokers, [name], PARTITIONS)
        produce(self.brokers, name, pieces(keys, events), PARTITIONS)
        self.session.run(
            f"CREATE EXTERNAL STREAM {name} (id int64, product_id string, quantity int64, note string)"
            f" SETTINGS type = 'kafka', topic = '{name}'"
        )

    def view(self, name: str, stream: str, dictionary: str, start: str = "earliest") -> None:
        self.session.run(
            f"CREATE MATERIALIZED VIEW {name} AS SELECT {stream}.id AS id, product_id, quantity, name, price"
            f" FROM {stream} JOIN {dictionary} ON {stream}.product_id = {dictionary}.id"
            f" SETTINGS join_algorithm = 'direct', seek_to = '{start}'"
        )

    def rate(self, view: str, events: int) -> float:
        """Events per second after the first fifth."""
        started, before = 0.0, 0
        while True:
            reached = sum(self.reached(view))
            if not started and reached >= events / 5:
                started, before = time.monotonic(), reached
            if reached >= events:
                return (reached - before) / (time.monotonic() - started)
            time.sleep(0.02)

    def reached(self, view: str) -> list[int]:
        """The committed offset of each input partition, as the worker reports it."""
        query = self.session.context.catalog.query(view)
        if query.error:
            raise RuntimeError(query.error)
        return [int(end) for ends in query.progress.get("offsets", {}).values() for end in ends.values()]

    def figures(self, dictionary: str) -> str:
        figures = statistics(self.session.context, dictionary)
        row = figures.to_pylist()[0] if figures.num_rows else {}
        return "  ".join(f"{name}={row[name]:,}" for name in FIGURES if row.get(name) is not None)


def pieces(keys: int, events: int) -> Iterator[pa.Table]:
    random = np.random.default_rng(7)
    for start in range(0, events, PIECE):
        count = min(PIECE, events - start)
        product = random.integers(0, keys, count)
        yield pa.table(
            {
                "id": pa.array(np.arange(start, start + count), pa.int64()),
                "product_id": pa.array(np.char.add("p", product.astype(str)).astype(object), pa.string()),
                "quantity": pa.array(random.integers(1, 9, count), pa.int64()),
                "note": pa.array(["ordered in the shop"] * count, pa.string()),
            }
        )


@contextmanager
def world(events: int, seconds: int) -> Iterator[World]:
    with tempfile.TemporaryDirectory(prefix="dovetail-bench-") as name:
        folder = Path(name)
        with mariadb(folder / "mariadb") as database:
            database.execute("CREATE TABLE shop.products (id varchar(20) PRIMARY KEY, name varchar(40), price double)")
            database.execute(
                "INSERT INTO shop.products SELECT concat('p', seq), concat('product ', seq), seq / 100"
                f" FROM shop.seq_0_to_{PRODUCTS - 1}"
            )
            components = ("kafka", "redis", "worker")
            with (
                temporary_stack(folder / "stack", components=components, kafka_heap_mb=1024) as stack,
                Session.open(stack.connected_settings()) as session,
            ):
                yield World(session, database, events, seconds)


@contextmanager
def second_worker(made: World) -> Iterator[None]:
    environment = os.environ | made.session.context.settings.as_environment() | {"DOVETAIL_WORKER_PORT": "0"}
    worker = subprocess.Popen(
        [sys.executable, "-m", "dovetail.services.worker"], env=environment, stderr=subprocess.DEVNULL
    )
    try:
        while len(made.session.context.catalog.workers(since_ms=0)) < 2:
            time.sleep(0.1)
        yield
    finally:
        worker.terminate()
        worker.wait()


def hot(made: World) -> None:
    made.dictionary("few", 10_000)
    made.stream("hot", 1000, made.events)
    made.view("hot_out", "hot", "few")
    print(f"hot      {made.rate('hot_out', made.events):9,.0f} events per second  {made.figures('few')}", flush=True)
    made.session.run("DROP VIEW hot_out WITH DATA")


def two(made: World) -> None:
    made.dictionary("few_of_two", 10_000)
    made.stream("split", 1000, made.events)
    with second_worker(made):
        made.view("split_out", "split", "few_of_two")
        rate = made.rate("split_out", made.events)
        print(f"two      {rate:9,.0f} events per second, two workers", flush=True)
        made.session.run("DROP VIEW split_out WITH DATA")


def source(made: World) -> None:
    print(f"source   {from_source(made, 'many')}", flush=True)


def shared(made: World) -> None:
    with second_worker(made):
        print(f"shared   {from_source(made, 'many_of_two')}, two workers", flush=True)


def from_source(made: World, dictionary: str) -> str:
    """From the first event on: it is the empty cache that is measured."""
    made.dictionary(dictionary, 10_000)
    stream, view = f"of_{dictionary}", f"of_{dictionary}_out"
    made.stream(stream, PRODUCTS, made.events)
    made.view(view, stream, dictionary)
    while not sum(made.reached(view)):
        time.sleep(0.01)
    started, before = time.monotonic(), sum(made.reached(view))
    made.rate(view, made.events)
    rate = (made.events - before) / (time.monotonic() - started)
    figures = made.figures(dictionary)
    made.session.run(f"DROP VIEW {view} WITH DATA")
    return f"{rate:9,.0f} events per second  {figures}"


def redis(made: World) -> None:
    """After ``source``: its keys stand in Redis, under the same dictionary's name."""
    made.session.run("DROP DICTIONARY many")
    made.dictionary("many", 1)
    made.view("warm_out", "of_many", "many")
    made.rate("warm_out", made.events)
    made.session.run("DROP VIEW warm_out WITH DATA")
    made.view("cold_out", "of_many", "many")
    print(f"redis    {made.rate('cold_out', made.events):9,.0f} events per second  {made.figures('many')}", flush=True)
    made.session.run("DROP VIEW cold_out WITH DATA")


def latency(made: World) -> None:
    made.dictionary("timed", 10_000)
    made.stream("steady", 1000, 0)
    made.view("steady_out", "steady", "timed", start="latest")
    stop = threading.Event()
    sender = threading.Thread(target=send, args=(made.brokers, made.seconds, stop))
    sender.start()
    try:
        delays = received(made.brokers, ["steady_out"], "id", WARM_UP_S, made.seconds)
    finally:
        stop.set()
        sender.join()
    p50, p95, p99 = np.percentile(delays, [50, 95, 99])
    print(
        f"latency  at {RATE:,} events a second, {len(delays):,} events: p50 {p50:.0f} ms, p95 {p95:.0f} ms,"
        f" p99 {p99:.0f} ms",
        flush=True,
    )
    made.session.run("DROP VIEW steady_out WITH DATA")


def send(brokers: str, seconds: int, stop: threading.Event) -> None:
    """Events in time, in bursts of a hundredth of a second; the id is the time of sending, in ms."""
    producer = Producer({"bootstrap.servers": brokers, "linger.ms": 1})
    began = time.monotonic()
    for burst in range((WARM_UP_S + seconds) * 100):
        pause = began + burst / 100 - time.monotonic()
        if pause > 0 and stop.wait(pause):
            return
        for number in range(RATE // 100):
            event = {
                "id": int(now_ms()),
                "product_id": f"p{(burst * 97 + number) % 1000}",
                "quantity": 1,
                "note": "ordered in the shop",
            }
            producer.produce("steady", orjson.dumps(event), partition=number % PARTITIONS)
        producer.poll(0)
    producer.flush()


def memory(made: World) -> None:
    made.dictionary("long", 10_000)
    made.stream("long_run", PRODUCTS, 5_000_000)
    made.view("long_out", "long_run", "long")
    found: dict[int, int] = {}
    for million in range(1, 6):
        while sum(made.reached("long_out")) < million * 1_000_000:
            time.sleep(0.1)
        found[million] = resident("long_out")
    sizes = ", ".join(f"{size >> 20} MiB after {million} M" for million, size in found.items())
    print(f"memory   {sizes}", flush=True)
    made.session.run("DROP VIEW long_out WITH DATA")


def resident(query: str) -> int:
    """The resident bytes of the child that runs ``query``."""
    for process in psutil.process_iter(["name", "memory_info"]):
        if process.info["name"] == query:
            return int(process.info["memory_info"].rss)
    return 0


PARTS = {part.__name__: part for part in (hot, two, source, shared, redis, latency, memory)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--seconds", type=int, default=30, help="length of the latency part")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, by commas; redis needs source before it")
    options = parser.parse_args()
    with world(options.events, options.seconds) as made:
        for name in options.only.split(","):
            PARTS[name](made)


if __name__ == "__main__":
    main()
