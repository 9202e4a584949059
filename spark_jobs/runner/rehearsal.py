"""``python -m dovetail.spark_jobs.runner.rehearsal BROKERS JARS FOLDER``: a small join from its start to its end.

It leaves the class archive of Spark's JVM: what the first batches of a query load is in it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pyspark import SparkContext

from dovetail.broker import clients, topics
from dovetail.broker.address import BrokerAddress
from dovetail.broker.topic_shapes import TopicAdmin, TopicShape
from dovetail.runtime.class_archive import ClassArchive
from dovetail.runtime.storage.local_folder import LocalFolder
from dovetail.spark_jobs.runner.job_settings import JobSettings
from dovetail.spark_jobs.runner.query import RunningQuery
from dovetail.spark_jobs.runner.spark_session import QUICK_JAVA, quoted, start_session
from dovetail.sql.catalog import Catalog
from dovetail.sql.planner import plan_query
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateStream, Select

_STREAMS = ("CREATE STREAM orders (k int, a string)", "CREATE STREAM clicks (k int, b string)")
_QUERY = "SELECT o.k, a, b FROM orders AS o LEFT JOIN clicks AS c ON o.k = c.k SETTINGS seek_to = 'earliest'"
_OUTPUT = "rehearsal"
_RECORDS, _KEYS = 200, 20
_PATIENCE_S = 120.0


def main(arguments: Sequence[str] = sys.argv[1:]) -> None:
    brokers, jars, folder = BrokerAddress(arguments[0]), Path(arguments[1]), Path(arguments[2])
    catalog = Catalog.open("sqlite://")
    for text in _STREAMS:
        stream = parse_one(text)
        assert isinstance(stream, CreateStream)
        catalog.create(stream, now_ms=0)
        _fill(brokers, stream)
    query = parse_one(_QUERY)
    assert isinstance(query, Select)
    (fragment,) = plan_query(_OUTPUT, query, catalog).fragments
    archive = ClassArchive.of_spark(jars)
    archive.forget()
    options = " ".join([QUICK_JAVA, *map(quoted, archive.recording)])
    session = start_session(_OUTPUT, sorted(jars.glob("spark/*.jar")), "local[2]", java_options=options)
    running = RunningQuery.start(
        session,
        fragment.dataflow,
        _OUTPUT,
        _OUTPUT,
        brokers,
        LocalFolder(folder / "checkpoint"),
        fingerprint="",
        plan="",
        snapshots=dict,
        settings=JobSettings(buckets=2, local_copy_dir=folder / "copy"),
    )
    running.await_read(topics.end_offsets(clients.admin(brokers), fragment.dataflow.topics), _PATIENCE_S)
    running.stop()
    session.stop()
    _end_java()
    archive.keep()


def _fill(brokers: BrokerAddress, stream: CreateStream) -> None:
    TopicAdmin(brokers, _PATIENCE_S).create(stream.name, TopicShape(partitions=2))
    producer = clients.producer(brokers, {})
    for number in range(_RECORDS):
        row = {column.name: number % _KEYS if column.name == "k" else f"{number}" for column in stream.columns}
        producer.produce(stream.name, json.dumps(row))
    producer.flush(_PATIENCE_S)


def _end_java() -> None:
    """The JVM ends when its input does, and writes the archive then."""
    gateway = SparkContext._gateway  # noqa: SLF001
    assert gateway is not None
    gateway.shutdown()
    java = gateway.proc
    java.stdin.close()
    java.wait(_PATIENCE_S)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    # Threads that wait for the JVM that has gone must not hold the process.
    os._exit(0)
