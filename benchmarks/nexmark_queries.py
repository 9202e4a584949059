"""Queries of Nexmark, Kafka to Kafka, one after the other over the same topics.

    python -m benchmarks.nexmark_queries [--events 1000000] [--only q3,q20]

A rate counts all events of the stream, also those that the query does not read; the start of the query is in it.
q13 runs in a lookup worker, and is left to ``make bench-lookup``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from benchmarks.load import PIECE, committed_rows, create_topics, produce
from benchmarks.nexmark import Nexmark
from benchmarks.running import drain, start
from dovetail.runtime.settings import read_settings
from dovetail.services.jars import jar_paths
from dovetail.services.stack import temporary_stack
from dovetail.spark_jobs.runner.spark_session import start_session
from dovetail.spark_jobs.runner.warm_up import warm_up
from dovetail.sql.syntax.parse import parse

FOLDER = Path(__file__).parents[1] / "examples" / "nexmark"
STREAMS = ("person", "auction", "bid")
PARTITIONS = 2
COMPARED = ("q3", "q4", "q5", "q7", "q8", "q20", "q23")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=400_000, help="records in one micro-batch")
    parser.add_argument("--only", default=",".join(COMPARED), help="queries, by commas")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dovetail-bench-") as name:
        folder = Path(name)
        with temporary_stack(folder / "stack", components=("kafka",), kafka_heap_mb=1024) as stack:
            brokers = stack.endpoint("kafka")
            ends = load(brokers, options.events)
            settings = read_settings().model_copy(update={"max_offsets_per_trigger": options.batch})
            session = start_session("benchmark", jar_paths(settings, "spark"), "local[2]")
            warm_up(session)
            tables = [statement.text for statement in parse((FOLDER / "tables.sql").read_text())]
            for query in options.only.split(","):
                own = folder / query
                own.mkdir()
                view = f"CREATE MATERIALIZED VIEW {query} AS {(FOLDER / f'{query}.sql').read_text()}"
                begun = time.monotonic()
                running = start(session, brokers, own, settings, tables, view)
                drain(running, {topic: ends[topic] for topic in STREAMS if topic in view.split()})
                seconds = time.monotonic() - begun
                running.stop()
                rate, rows = options.events / seconds, committed_rows(brokers, query)
                print(f"{query:6} {seconds:7.1f} s  {rate:9,.0f} events per second  {rows:,} rows out", flush=True)
            session.stop()


def load(brokers: str, events: int) -> dict[str, dict[int, int]]:
    """Where the topics end."""
    create_topics(brokers, list(STREAMS), PARTITIONS)
    stream = Nexmark()
    ends = {topic: dict.fromkeys(range(PARTITIONS), 0) for topic in STREAMS}
    for first in range(0, events, PIECE):
        for topic, rows in stream.events(first, min(first + PIECE, events)).items():
            produce(brokers, topic, iter([rows]), PARTITIONS)
            for partition in range(PARTITIONS):
                ends[topic][partition] += (rows.num_rows + PARTITIONS - 1 - partition) // PARTITIONS
    return ends


if __name__ == "__main__":
    main()
