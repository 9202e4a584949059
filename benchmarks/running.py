"""A query started from SQL in this process, as the runner does it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.load import committed_rows
from dovetail.broker.address import BrokerAddress
from dovetail.runtime.settings import Settings
from dovetail.runtime.storage.local_folder import LocalFolder
from dovetail.spark_jobs.runner.job_settings import JobSettings
from dovetail.spark_jobs.runner.query import RunningQuery
from dovetail.sql.catalog import Catalog
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateStream, CreateView


def start(
    session: SparkSession, brokers: str, folder: Path, settings: Settings, ddl: list[str], view: str
) -> RunningQuery:
    """Create the streams of ``ddl`` (topics are there already), plan ``view`` and start it."""
    catalog = Catalog.open(f"sqlite:///{folder / 'catalog.db'}")
    for text in ddl:
        statement = parse_one(text)
        assert isinstance(statement, CreateStream)
        catalog.create(statement, now_ms=0)
    statement = parse_one(view)
    assert isinstance(statement, CreateView)
    plan = plan_query(statement.name, statement, catalog)
    print(plan.explain())
    return RunningQuery.start(
        session,
        plan.dataflow,
        name=statement.name,
        output_topic=statement.name,
        brokers=BrokerAddress(brokers),
        storage=LocalFolder(folder / "checkpoint"),
        fingerprint=plan.fingerprint,
        plan=plan.explain(),
        snapshots=dict,
        settings=JobSettings(
            buckets=plan.settings.number("buckets") or 2,
            max_offsets_per_trigger=settings.max_offsets_per_trigger,
            output_partitions=2,
            local_copy_dir=folder / "state-copy",
        ),
    )


def drain(query: RunningQuery, ends: dict[str, dict[int, int]]) -> None:
    """Wait until all input up to ``ends`` is read, its state saved and its output committed."""
    while not query.has_read(ends):
        failure = query.error()
        if failure is not None:
            raise failure
        time.sleep(0.05)


def builtin(brokers: str, folder: Path, kind: str, rows: int, batch: int) -> float:
    """The seconds that Spark's own join takes, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.builtin", brokers, str(folder / "builtin"), str(batch), kind]
    finished = subprocess.run(command, check=True, capture_output=True, text=True)
    seconds = float(json.loads(finished.stdout.splitlines()[-1])["seconds"])
    report("spark", rows, seconds, committed_rows(brokers, "builtin"))
    return seconds


def report(name: str, rows: int, seconds: float, output: int) -> None:
    """``rows`` of each side."""
    print(f"{name:10} {seconds:7.1f} s  {2 * rows / seconds:9,.0f} rows in per second  {output:,} rows out", flush=True)
