"""Joins bounded by time and order: ``make bench-bounded``.

    python -m benchmarks.bounded [--rows 1000000] [--only range,long,asof,latest,hot,drop]

range   bids and asks of 100,000 keys, 10 s apart at most, beside Spark's own range join of the same topics
long    ten times as long a time, the same number of rows per second of it: the state on the way
asof    trades with the last quote of 1,000 symbols, one-shot; and updating, as tables with watermarks
latest  the same with the quote that came last
hot     both again, with half of all rows under one symbol
drop    one step of the watermark that clears 1,000,000 rows, in this process

Machines differ and are noisy: read the ratio, which comes from one run.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.load import PIECE, TIMES, committed_rows, create_topics, produce
from benchmarks.running import builtin, drain, report, start
from dovetail.changelog.changes import Changes
from dovetail.joins.dataflow.ports import Ingest, JoinKind, Port, Watermark
from dovetail.joins.operators.range import Band, RangeOperator, RangeSpec
from dovetail.joins.state.store import RunStore
from dovetail.runtime.settings import read_settings
from dovetail.services.jars import jar_paths
from dovetail.services.stack import temporary_stack
from dovetail.spark_jobs.runner.spark_session import start_session
from dovetail.spark_jobs.runner.warm_up import warm_up

PARTITIONS = 2
KEYS = 100_000
SYMBOLS = 1_000
ROWS_PER_S = 1_000
"""Of event time, on each side."""
START_MS = 1_700_000_000_000
COLUMNS = {"bids": "price", "asks": "qty", "trades": "price", "quotes": "bid"}
RANGE = (
    "CREATE MATERIALIZED VIEW {name} AS SELECT bids.k AS k, bids.name AS name, price, qty FROM {left} AS bids"
    " JOIN {right} AS asks ON bids.k = asks.k AND date_diff_within(10s) SETTINGS seek_to = 'earliest'"
)
ASOF = (
    "CREATE MATERIALIZED VIEW {name} AS SELECT t.k AS k, t.at AS at, price, bid FROM {left} AS t ASOF JOIN {right} AS q"
    " ON t.k = q.k AND t.at >= q.at"
)
LATEST = (
    "CREATE MATERIALIZED VIEW {name} AS SELECT t.k AS k, t.at AS at, price, bid FROM {left} AS t LATEST JOIN"
    " {right} AS q ON t.k = q.k SETTINGS seek_to = 'earliest'"
)
STREAM = "CREATE STREAM {name} (k int64, name string, {column} float64, at datetime64(3))"
TABLE = (
    "CREATE TABLE {name} (k BIGINT, name VARCHAR, {column} DOUBLE, at TIMESTAMP,"
    " WATERMARK FOR at AS at - INTERVAL '1' SECOND) APPEND ONLY"
)


@dataclass
class World:
    session: SparkSession
    brokers: str
    folder: Path
    rows: int
    batch: int

    def load(self, topic: str, column: str, rows: int, keys: int, hot: bool = False) -> None:
        create_topics(self.brokers, [topic], PARTITIONS)
        produce(self.brokers, topic, side(rows, keys, len(topic), column, hot), PARTITIONS)

    def run(
        self, name: str, ddl: list[str], view: str, topics: tuple[str, str], rows: int, state: bool = False
    ) -> float:
        """The seconds from the start of the query to its last commit."""
        settings = read_settings().model_copy(update={"max_offsets_per_trigger": self.batch})
        own = self.folder / name
        own.mkdir()
        begun = time.monotonic()
        query = start(self.session, self.brokers, own, settings, ddl, view)
        for tenth in range(1, 11) if state else (10,):
            reached = rows // PARTITIONS * tenth // 10
            drain(query, {topic: dict.fromkeys(range(PARTITIONS), reached) for topic in topics})
            if state:
                size = sum(path.stat().st_size for path in (own / "state-copy").rglob("*") if path.is_file())
                print(f"{name:10} state after {tenth * 10:3} %: {size / 1e6:.1f} MB", flush=True)
        seconds = time.monotonic() - begun
        query.stop()
        report(name, rows, seconds, committed_rows(self.brokers, name))
        return seconds


def side(rows: int, keys: int, seed: int, column: str, hot: bool) -> Iterator[pa.Table]:
    """``rows`` rows in the order of their time; ``hot``: every second one has key 0."""
    random = np.random.default_rng(seed)
    for first in range(0, rows, PIECE):
        count = min(PIECE, rows - first)
        key = random.integers(0, keys, count)
        if hot:
            key[::2] = 0
        ms = START_MS + (np.arange(first, first + count) * 1000 // ROWS_PER_S)
        yield pa.table(
            {
                "k": pa.array(key, pa.int64()),
                "name": pa.array(np.char.add("customer-", key.astype(str)).astype(object), pa.string()),
                column: pa.array(np.round(random.random(count) * 1000, 2), pa.float64()),
                "at": pa.array(ms, pa.timestamp("ms")),
                TIMES: pa.array(ms, pa.int64()),
            }
        )


def streams(form: str, *names: str, column: dict[str, str] | None = None) -> list[str]:
    known = column or COLUMNS
    return [form.format(name=name, column=known[name]) for name in names]


def range_join(world: World) -> None:
    world.load("bids", "price", world.rows, KEYS)
    world.load("asks", "qty", world.rows, KEYS)
    view = RANGE.format(name="ranged", left="bids", right="asks")
    ours = world.run("ranged", streams(STREAM, "bids", "asks"), view, ("bids", "asks"), world.rows)
    create_topics(world.brokers, ["builtin"], PARTITIONS)
    theirs = builtin(world.brokers, world.folder, "range", world.rows, world.batch)
    print(f"ratio: {theirs / ours:.2f} times the rows per second of Spark's own range join", flush=True)


def long(world: World) -> None:
    rows = world.rows * 10
    world.load("many_bids", "price", rows, KEYS)
    world.load("many_asks", "qty", rows, KEYS)
    columns = {"many_bids": "price", "many_asks": "qty"}
    ddl = streams(STREAM, *columns, column=columns)
    view = RANGE.format(name="long", left="many_bids", right="many_asks")
    world.run("long", ddl, view, ("many_bids", "many_asks"), rows, state=True)


def asof(world: World) -> None:
    world.load("trades", "price", world.rows, SYMBOLS)
    world.load("quotes", "bid", world.rows, SYMBOLS)
    ddl = streams(STREAM, "trades", "quotes")
    once = ASOF.format(name="asof", left="trades", right="quotes") + " SETTINGS seek_to = 'earliest'"
    world.run("asof", ddl, once, ("trades", "quotes"), world.rows)
    tables = streams(TABLE, "trades", "quotes")
    anew = ASOF.format(name="asof_new", left="trades", right="quotes")
    world.run("asof_new", tables, anew, ("trades", "quotes"), world.rows)


def latest(world: World) -> None:
    """After ``asof``: the same topics."""
    view = LATEST.format(name="latest", left="trades", right="quotes")
    world.run("latest", streams(STREAM, "trades", "quotes"), view, ("trades", "quotes"), world.rows)


def hot(world: World) -> None:
    columns = {"hot_trades": "price", "hot_quotes": "bid"}
    for topic, column in columns.items():
        world.load(topic, column, world.rows, SYMBOLS, hot=True)
    for name, text, form in (
        ("hot_asof", ASOF + " SETTINGS seek_to = 'earliest'", STREAM),
        ("hot_new", ASOF, TABLE),
        ("hot_last", LATEST, STREAM),
    ):
        view = text.format(name=name, left="hot_trades", right="hot_quotes")
        world.run(name, streams(form, *columns, column=columns), view, ("hot_trades", "hot_quotes"), world.rows)


def drop(rows: int = 1_000_000) -> None:
    """The left side holds ``rows`` rows in 20 runs; the right watermark passes them all."""
    schemas = [pa.schema([(f"{side}.k", pa.int64()), (f"{side}.t", pa.int64())]) for side in "lr"]
    left, right = (
        Port(schema, (schema.names[0],), Ingest.APPEND, watermark=Watermark(schema.names[1], 0)) for schema in schemas
    )
    spec = RangeSpec(JoinKind.INNER, left, right, Band("l.t", "r.t", -10, 10))
    operator = RangeOperator(spec, RunStore(), "drop")
    random = np.random.default_rng(1)
    for first in range(0, rows, rows // 20):
        times = np.arange(first, first + rows // 20)
        held = pa.table([random.integers(0, KEYS, len(times)), times], schema=schemas[0])
        operator.on_batch([Changes.of(held).table, None])
    begun = time.monotonic()
    operator.on_watermark([rows * 2, rows * 2])
    print(f"drop       {rows:,} rows cleared in {(time.monotonic() - begun) * 1000:.0f} ms", flush=True)


PARTS = {"range": range_join, "long": long, "asof": asof, "latest": latest, "hot": hot}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of each side")
    parser.add_argument("--batch", type=int, default=400_000, help="records in one micro-batch, both sides together")
    parser.add_argument(
        "--only", default=",".join([*PARTS, "drop"]), help="parts, by commas; latest needs asof before it"
    )
    options = parser.parse_args()
    wanted = options.only.split(",")
    if "drop" in wanted:
        drop()
    if not set(wanted) & set(PARTS):
        return
    with tempfile.TemporaryDirectory(prefix="dovetail-bench-") as name:
        folder = Path(name)
        with temporary_stack(folder / "stack", components=("kafka",), kafka_heap_mb=1024) as stack:
            session = start_session("benchmark", jar_paths(read_settings(), "spark"), "local[2]")
            warm_up(session)
            world = World(session, stack.endpoint("kafka"), folder, options.rows, options.batch)
            for part in wanted:
                if part in PARTS:
                    PARTS[part](world)
            session.stop()


if __name__ == "__main__":
    main()
