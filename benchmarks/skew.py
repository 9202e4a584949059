"""Joins of skewed keys beside uniform ones, with as many rows out: ``make bench-skew``.

    python -m benchmarks.skew [--rows 1000000] [--heavy-rows 30000] [--batch 400000] [--only one,both,dropped]

one      left rows of skewed keys, each of which meets one right row: as many rows out as left ones
both     both sides skewed: a key with a part p of the rows of each side makes p x p of all pairs. The uniform keys
         beside them are as few as make as many pairs
dropped  the same with a condition that lets one pair in a thousand through: what a batch makes is not what it keeps

uniform  every key as often as the others
zipf     the n-th of the keys has 1/n of the rows of the first (Zipf 1.0)
tenth    one key has a tenth of all rows

It tells the rate, the longest batch, and the most memory that a Python worker of Spark has come to. Machines differ
and are noisy: read the ratios, which come from one run.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import psutil
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.load import PIECE, committed_rows, create_topics, produce
from benchmarks.running import start
from dovetail.runtime.settings import read_settings
from dovetail.services.jars import jar_paths
from dovetail.services.stack import temporary_stack
from dovetail.spark_jobs.runner.query import RunningQuery
from dovetail.spark_jobs.runner.spark_session import start_session
from dovetail.spark_jobs.runner.warm_up import warm_up

PARTITIONS = 2
KEYS = 100_000
KINDS = ("uniform", "zipf", "tenth")
STREAM = "CREATE STREAM {name} (k int64, v int64)"
VIEW = (
    "CREATE MATERIALIZED VIEW {name} AS SELECT l.k AS k, l.v AS lv, r.v AS rv FROM {left} AS l JOIN {right} AS r"
    " ON l.k = r.k{condition} SETTINGS seek_to = 'earliest', join_max_buffered_bytes = 10000000000"
)
ONE_IN_A_THOUSAND = " AND (l.v + r.v) % 1000 = 0"


def shares(kind: str, keys: int) -> npt.NDArray[np.float64]:
    """The part of all rows that each key has."""
    if kind == "zipf":
        weights = 1 / np.arange(1, keys + 1)
    else:
        weights = np.ones(keys)
        if kind == "tenth":
            weights[0] = (keys - 1) / 9
    found: npt.NDArray[np.float64] = weights / weights.sum()
    return found


def keys_of_equal_output() -> int:
    """So many uniform keys make as many pairs of two equal sides as one key with a tenth of all rows does."""
    return round(1 / float((shares("tenth", KEYS) ** 2).sum()))


def rows_of(count: int, part: npt.NDArray[np.float64], seed: int) -> Iterator[pa.Table]:
    random = np.random.default_rng(seed)
    through = np.cumsum(part)
    for first in range(0, count, PIECE):
        drawn = np.searchsorted(through, random.random(min(PIECE, count - first)))
        keys = np.minimum(drawn, len(part) - 1)
        yield pa.table({"k": keys, "v": np.arange(first, first + len(keys))})


@dataclass(frozen=True)
class Measured:
    seconds: float
    longest_s: float
    worker_mb: float
    rows_out: int


@dataclass
class World:
    session: SparkSession
    brokers: str
    folder: Path
    batch: int

    def load(self, topic: str, pieces: Iterator[pa.Table]) -> None:
        create_topics(self.brokers, [topic], PARTITIONS)
        produce(self.brokers, topic, pieces, PARTITIONS)

    def run(self, name: str, left: str, right: str, rows: dict[str, int], condition: str = "") -> Measured:
        settings = read_settings().model_copy(update={"max_offsets_per_trigger": self.batch})
        own = self.folder / name
        own.mkdir()
        ddl = [STREAM.format(name=topic) for topic in (left, right)]
        view = VIEW.format(name=name, left=left, right=right, condition=condition)
        begun = time.monotonic()
        query = start(self.session, self.brokers, own, settings, ddl, view)
        longest_s, worker_mb = watched(query, rows)
        seconds = time.monotonic() - begun
        query.stop()
        return Measured(seconds, longest_s, worker_mb, committed_rows(self.brokers, name))


def watched(query: RunningQuery, rows: dict[str, int]) -> tuple[float, float]:
    """When all is read: the seconds of the longest batch, and the most memory of a worker, in MB."""
    ends = {topic: dict.fromkeys(range(PARTITIONS), count // PARTITIONS) for topic, count in rows.items()}
    longest_ms, most = 0, 0
    while not query.has_read(ends):
        if (failure := query.error()) is not None:
            raise failure
        longest_ms = max(longest_ms, query.progress().batch_ms)
        most = max([most, *map(_resident, psutil.Process().children(recursive=True))])
        time.sleep(0.1)
    return max(longest_ms, query.progress().batch_ms) / 1000, most / 1e6


def _resident(process: psutil.Process) -> int:
    """Of a Python worker; 0 of other processes."""
    try:
        return int(process.memory_info().rss) if process.name().startswith("pyspark") else 0
    except psutil.NoSuchProcess:
        return 0


def one(world: World, rows: int) -> dict[str, Measured]:
    world.load("goods", iter([pa.table({"k": np.arange(KEYS), "v": np.arange(KEYS)})]))
    found = {}
    for kind in KINDS:
        world.load(f"sales_{kind}", rows_of(rows, shares(kind, KEYS), 1))
        found[kind] = world.run(f"one_{kind}", f"sales_{kind}", "goods", {f"sales_{kind}": rows, "goods": KEYS})
    return found


def both(
    world: World, rows: int, name: str = "both", condition: str = "", kinds: Sequence[str] = KINDS
) -> dict[str, Measured]:
    found = {}
    for kind in kinds:
        part = shares(kind, keys_of_equal_output() if kind == "uniform" else KEYS)
        left, right = (f"{name}_{side}_{kind}" for side in ("left", "right"))
        for seed, topic in enumerate((left, right)):
            world.load(topic, rows_of(rows, part, seed))
        found[kind] = world.run(f"{name}_{kind}", left, right, {left: rows, right: rows}, condition)
    return found


def tell(name: str, found: dict[str, Measured]) -> None:
    uniform = found["uniform"]
    for kind, one_of in found.items():
        rate, beside = one_of.rows_out / one_of.seconds, uniform.rows_out / uniform.seconds
        print(
            f"{name:8} {kind:8} {one_of.seconds:6.1f} s  {one_of.rows_out:11,} rows out  {rate:10,.0f} a second,"
            f" {rate / beside:.2f} of uniform  longest batch {one_of.longest_s:.1f} s,"
            f" {one_of.longest_s / uniform.longest_s:.2f} of uniform  worker {one_of.worker_mb:,.0f} MB",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="left rows of one")
    parser.add_argument("--heavy-rows", type=int, default=30_000, help="rows of each side of both and dropped")
    parser.add_argument("--batch", type=int, default=400_000, help="records in one micro-batch, both sides together")
    parser.add_argument("--only", default="one,both,dropped", help="parts, by commas")
    options = parser.parse_args()
    wanted = options.only.split(",")
    with tempfile.TemporaryDirectory(prefix="dovetail-bench-") as name:
        folder = Path(name)
        with temporary_stack(folder / "stack", components=("kafka",), kafka_heap_mb=1024) as stack:
            session = start_session("benchmark", jar_paths(read_settings(), "spark"), "local[2]")
            warm_up(session)
            world = World(session, stack.endpoint("kafka"), folder, options.batch)
            both(
                world, 2_000, "before", kinds=KINDS[:1]
            )  # processes start, and imports are done, before anything is measured
            if "one" in wanted:
                tell("one", one(world, options.rows))
            if "both" in wanted:
                tell("both", both(world, options.heavy_rows))
            if "dropped" in wanted:
                tell("dropped", both(world, options.heavy_rows, "dropped", ONE_IN_A_THOUSAND))
            session.stop()


if __name__ == "__main__":
    main()
