"""``python -m benchmarks.beside_flink [--rows 2000000] [--rounds 3] [--only inner,range]``: Dovetail beside Flink SQL.

One broker, the same topics, the engines in turn, medians. An answer that is not that of DuckDB ends the benchmark.

Fairness. Dovetail writes exactly-once, with durable state; Flink at least once, with a checkpoint every ten seconds.
Flink is tuned: object reuse, 6 GB of heap, lz4 and large batches for its sink, mini-batches under aggregates; it reads
up to the ends of its topics and stops. Both are up before the statement: of Flink that is the JVM and its imports, not
the cluster that its statement starts. Dovetail has its defaults but for two buckets, two cores, and no bound on the
state of joins that keep all rows.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

from confluent_kafka import Producer

from benchmarks.beside_flink import flink, ours
from benchmarks.beside_flink.outcome import wrong_rows
from benchmarks.beside_flink.usage import Measured
from benchmarks.beside_flink.workloads import Input, Workload, workloads
from benchmarks.load import create_topics
from dovetail.changelog.formats import json_text
from dovetail.runtime.settings import read_settings
from dovetail.services.stack import temporary_stack

_PARTITIONS = 2
_QUEUED = 2_000_000
_BY_KEY = -1
ENGINES: Mapping[str, Callable[[Workload, str, str, Path], Measured]] = {"dovetail": ours.run, "flink": flink.run}


def main() -> None:
    options = arguments()
    flink.interpreter()
    chosen = [one for one in workloads(options.rows) if not options.only or one.name in options.only.split(",")]
    results = read_settings().data_dir / "bench" / "beside_flink.jsonl"
    results.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="dovetail-bench-") as name,
        temporary_stack(Path(name) / "broker", components=("kafka",), kafka_heap_mb=1024) as stack,
    ):
        brokers = stack.endpoint("kafka")
        for one in {one.name: one for workload in chosen for one in workload.inputs}.values():
            fill(brokers, one)
        for workload in chosen:
            compare(workload, brokers, Path(name), options.rounds, results)
    print(f"each run is a line of {results}")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows of each side of the largest join")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="names of joins, with commas")
    return parser.parse_args()


def fill(brokers: str, one: Input) -> None:
    create_topics(brokers, [one.name], _PARTITIONS)
    producer = Producer(
        {
            "bootstrap.servers": brokers,
            "linger.ms": 50,
            "compression.type": "lz4",
            "queue.buffering.max.messages": _QUEUED,
            "partitioner": "murmur2_random",
        }
    )
    for rows, ids, gone in one.pieces():
        members = rows if one.ids else rows.drop_columns(["id"])
        values = [text.encode() for text in json_text.objects(members)]
        keys = [None if key is None else key.encode() for key in ids.to_pylist()]
        for place, (key, value, is_gone) in enumerate(zip(keys, values, gone.to_pylist(), strict=True)):
            partition = _BY_KEY if one.ids else place % _PARTITIONS
            producer.produce(one.name, None if is_gone else value, key, partition)
        producer.flush()
    print(f"{one.name}: {one.rows:,} records", flush=True)


def compare(workload: Workload, brokers: str, folder: Path, rounds: int, results: Path) -> None:
    answer = workload.found()
    runs: dict[str, list[Measured]] = defaultdict(list)
    for number in range(rounds):
        for engine, run in ENGINES.items():
            output = f"{workload.name}_{engine}_{number}"
            if engine == "flink":
                create_topics(brokers, [output], _PARTITIONS)
            own = folder / output
            own.mkdir()
            measured = run(workload, brokers, output, own)
            if wrong := wrong_rows(workload, answer, brokers, output, by_flink=engine == "flink"):
                raise SystemExit(f"{workload.name}: {engine} has {wrong:,} rows wrong")
            runs[engine].append(measured)
            note(results, workload, engine, measured)
            print(f"  {workload.name} {engine} {number + 1}: {described(measured)}", flush=True)
    medians = {engine: median(found) for engine, found in runs.items()}
    print(f"{workload.name}: {workload.records:,} records in, {answer.num_rows:,} rows out")
    for engine, found in medians.items():
        print(f"  {engine:9} {described(found)}")
    ratio = medians["flink"].seconds / medians["dovetail"].seconds
    share = medians["dovetail"].cpu_s / medians["flink"].cpu_s
    print(f"  Dovetail is {ratio:.1f} times as fast, with {share:.0%} of the processor time", flush=True)


def median(runs: list[Measured]) -> Measured:
    return Measured(
        statistics.median(one.seconds for one in runs),
        statistics.median(one.cpu_s for one in runs),
        round(statistics.median(one.peak_bytes for one in runs)),
    )


def described(found: Measured) -> str:
    return f"{found.seconds:6.1f} s {found.cpu_s:6.1f} CPU-s {found.peak_bytes / (1 << 30):5.1f} GiB"


def note(results: Path, workload: Workload, engine: str, measured: Measured) -> None:
    with results.open("a") as lines:
        lines.write(
            json.dumps(
                {
                    "workload": workload.name,
                    "records": workload.records,
                    "engine": engine if engine == "dovetail" else f"flink {flink.VERSION}",
                    **asdict(measured),
                    "machine": platform.platform(),
                    "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                }
            )
            + "\n"
        )


if __name__ == "__main__":
    main()
