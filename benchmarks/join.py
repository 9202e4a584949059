"""Inner join of two JSON topics, Dovetail beside Spark's own stream-stream join: ``make bench-join``.

    python -m benchmarks.join [--rows 2000000] [--keys 800000] [--batch 2000000] [--skip-builtin] [--skip-latency]

Three parts, on one broker and the same topics:
throughput   both contenders read the same rows from the beginning, with durable state, and write the same joined rows
state        bytes of the checkpoint's state for each row held, beside the Arrow size of the row
latency      1,000 rows a second held for a while; from produce to a read_committed reader, in ms

Machines differ and are noisy: read the ratio, which comes from one run.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from benchmarks import latency
from benchmarks.load import committed_rows, create_topics, produce, side
from benchmarks.running import builtin, drain, report, start
from dovetail.runtime.settings import read_settings
from dovetail.services.jars import jar_paths
from dovetail.services.stack import temporary_stack
from dovetail.spark_jobs.runner.spark_session import start_session
from dovetail.spark_jobs.runner.warm_up import warm_up

DDL = [
    "CREATE STREAM orders (k int64, name string, price float64, ts int64)",
    "CREATE STREAM parcels (k int64, name string, qty float64, ts int64)",
]
VIEW = (
    "CREATE MATERIALIZED VIEW dovetail AS SELECT orders.k AS k, orders.name AS name, price, qty, orders.ts AS lts,"
    " parcels.ts AS rts FROM orders JOIN parcels ON orders.k = parcels.k"
    " SETTINGS seek_to = 'earliest', join_max_buffered_bytes = 10000000000"
)
PARTITIONS = 2


def main() -> None:
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="dovetail-bench-") as name:
        folder = Path(name)
        with temporary_stack(folder / "stack", components=("kafka",), kafka_heap_mb=1024) as stack:
            brokers = stack.endpoint("kafka")
            size = load(brokers, options.rows, options.keys)
            mean = size / 2 / options.rows
            print(f"{options.rows:,} + {options.rows:,} rows of {mean:.0f} bytes, {options.keys:,} keys")
            ours = dovetail(brokers, folder, options)
            if not options.skip_builtin:
                theirs = builtin(brokers, folder, "equal", options.rows, options.batch)
                print(f"ratio: {theirs / ours:.2f} times the rows per second of Spark's own join")
            if not options.skip_latency:
                latency.measure(brokers, folder / "latency", seconds=options.seconds)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows of each side")
    parser.add_argument("--keys", type=int, default=800_000)
    parser.add_argument("--batch", type=int, default=2_000_000, help="records in one micro-batch, both sides together")
    parser.add_argument("--seconds", type=int, default=60, help="length of the latency part")
    parser.add_argument("--skip-builtin", action="store_true")
    parser.add_argument("--skip-latency", action="store_true")
    return parser.parse_args()


def load(brokers: str, rows: int, keys: int) -> int:
    create_topics(brokers, ["orders", "parcels", "builtin"], PARTITIONS)
    size = produce(brokers, "orders", side(rows, keys, 1, "price"), PARTITIONS)
    return size + produce(brokers, "parcels", side(rows, keys, 2, "qty"), PARTITIONS)


def dovetail(brokers: str, folder: Path, options: argparse.Namespace) -> float:
    settings = read_settings().model_copy(update={"max_offsets_per_trigger": options.batch})
    session = start_session("benchmark", jar_paths(settings, "spark"), "local[2]")
    warm_up(session)
    own = folder / "dovetail"
    own.mkdir()
    started = time.monotonic()
    query = start(session, brokers, own, settings, DDL, VIEW)
    half = options.rows // PARTITIONS
    drain(query, {topic: dict.fromkeys(range(PARTITIONS), half) for topic in ("orders", "parcels")})
    seconds = time.monotonic() - started
    query.stop()
    session.stop()
    report("dovetail", options.rows, seconds, committed_rows(brokers, "dovetail"))
    state = sum(path.stat().st_size for path in (own / "checkpoint").rglob("*") if path.is_file())
    print(f"state: {state / 2 / options.rows:.1f} bytes of checkpoint for each row held")
    return seconds


if __name__ == "__main__":
    main()
