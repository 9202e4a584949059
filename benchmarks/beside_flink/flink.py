"""Flink: where it is installed, how it is tuned, and a run of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import venv
from pathlib import Path

from benchmarks.beside_flink.usage import Measured, Usage
from benchmarks.beside_flink.workloads import Input, Sink, Workload
from dovetail.runtime.settings import read_settings
from dovetail.services.jars import jar_paths

VERSION = "2.3.0"
_HEAP = "-Xmx6g"
_TUNED = {
    "parallelism.default": "2",
    "taskmanager.numberOfTaskSlots": "2",
    "state.backend.type": "hashmap",
    "execution.checkpointing.interval": "10 s",
    "pipeline.object-reuse": "true",
    "taskmanager.memory.managed.size": "1g",
    "taskmanager.memory.network.min": "256m",
    "taskmanager.memory.network.max": "256m",
}
_MINI_BATCH = {
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "500 ms",
    "table.exec.mini-batch.size": "50000",
    "table.optimizer.agg-phase-strategy": "TWO_PHASE",
}
"""What its aggregates are quicker with."""
_SENT = "'properties.compression.type' = 'lz4', 'properties.linger.ms' = '20', 'properties.batch.size' = '262144'"
_TYPES = {"k": "bigint", "name": "string", "price": "double", "qty": "int", "ts": "bigint"}
_EVENT_TIME = ", event_time AS to_timestamp_ltz(ts, 3), WATERMARK FOR event_time AS event_time - INTERVAL '10' SECOND"


def interpreter() -> Path:
    """That of an environment of its own, installed at the first call, which takes some minutes."""
    folder = read_settings().jars.parent / f"flink-{VERSION}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        print(f"installing Flink {VERSION} in {folder}, once", flush=True)
        venv.create(folder, clear=True, with_pip=True)
        quiet = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        # Some of what it needs is published as source that an older setuptools builds.
        subprocess.run([*quiet, "setuptools<81", "wheel"], check=True)
        subprocess.run([*quiet, f"apache-flink=={VERSION}"], check=True)
        [library] = folder.glob("lib/python*/site-packages/pyflink/lib")
        for jar in jar_paths(read_settings(), "flink"):
            (library / jar.name).write_bytes(jar.read_bytes())
        (folder / "complete").touch()
    return python


def run(workload: Workload, brokers: str, output: str, folder: Path) -> Measured:
    """The time of the job from its statement on: the JVM and its imports are there by then."""
    places = {"execution.checkpointing.dir": f"file://{folder}/checkpoints", "io.tmp.dirs": f"{folder}/tmp"}
    grouped = _MINI_BATCH if workload.sink is Sink.UPSERTED else {}
    wanted = {
        "settings": {**_TUNED, **places, **grouped},
        "tables": [*(_source(one, brokers, workload) for one in workload.inputs), _sink(workload, brokers, output)],
        "insert": f"INSERT INTO answer {workload.flink}",
    }
    (folder / "tmp").mkdir(parents=True)
    job = Path(__file__).with_name("job.py")
    with (
        (folder / "flink.log").open("wb") as log,
        subprocess.Popen(
            [str(interpreter()), str(job)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            cwd=folder,
            env=os.environ | {"JVM_ARGS": _HEAP},
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(wanted))
        process.stdin.close()
        _await(process, "submitted", folder)
        with Usage([process.pid]) as usage:
            begun_s = time.monotonic()
            _await(process, "done", folder)
            seconds = time.monotonic() - begun_s
    return usage.measured(seconds)


def _await(process: subprocess.Popen[str], word: str, folder: Path) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == word:
            return
    sys.exit(f"Flink has ended before it was {word}; see {folder / 'flink.log'}")


def _source(one: Input, brokers: str, workload: Workload) -> str:
    columns = ", ".join(f"{name} {kind}" for name, kind in _TYPES.items())
    place = f"'properties.bootstrap.servers' = '{brokers}', 'topic' = '{one.name}'"
    of_all = f"{place}, 'scan.bounded.mode' = 'latest-offset'"
    if one.ids:
        return (
            f"CREATE TABLE {one.name} (id string, {columns}, PRIMARY KEY (id) NOT ENFORCED) WITH ({of_all},"
            " 'connector' = 'upsert-kafka', 'key.format' = 'raw', 'value.format' = 'json')"
        )
    time_of = _EVENT_TIME if workload.timed else ""
    return (
        f"CREATE TABLE {one.name} ({columns}{time_of}) WITH ({of_all},"
        " 'connector' = 'kafka', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json')"
    )


def _sink(workload: Workload, brokers: str, output: str) -> str:
    columns = ", ".join(f"{name} {kind}" for name, kind in workload.columns.items())
    of_all = f"'properties.bootstrap.servers' = '{brokers}', 'topic' = '{output}', {_SENT}"
    if workload.sink is Sink.UPSERTED:
        key = f", PRIMARY KEY ({workload.key}) NOT ENFORCED"
        return (
            f"CREATE TABLE answer ({columns}{key}) WITH ({of_all},"
            " 'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json')"
        )
    return f"CREATE TABLE answer ({columns}) WITH ({of_all}, 'connector' = 'kafka', 'format' = '{workload.sink.value}')"
