"""The services host: a real broker, and Spark in this process; topics and queries of a case carry its own prefix."""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import SparkSession

from changelog.errors import InternalError, ServiceUnavailable
from joins.dataflow import Dataflow
from services.jars import jar_paths
from services.settings import Settings, read_settings
from services.stack import temporary_stack
from spark_jobs import counts, topics
from spark_jobs.query import RunningQuery
from spark_jobs.session import start_session
from spark_jobs.settings import JobSettings
from spark_jobs.source import topics_of
from tests.conformance.case import Case
from tests.conformance.host import Launch
from tests.conformance.records import Record
from tests.conformance.runner import Outcome, run_case
from tests.conformance.sql_engine import SqlEngine

AT_ONCE = 2
"""Cases that run side by side: most of a small batch is waiting."""
DRAIN_S = 90.0
_CALL_S = 30.0


@dataclass(frozen=True)
class Cluster:
    """What all cases share."""

    session: SparkSession
    brokers: str
    folder: Path
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        """The outcomes in the order of the cases."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            yield from pool.map(lambda case: run_case(case, self._engine), cases)

    def _engine(self, case: Case) -> SqlEngine:
        return SqlEngine(ServicesHost(self, f"case{next(self.numbers)}.{case.id}"))


@contextmanager
def own_cluster() -> Iterator[Cluster]:
    """A broker and a session for one run; nothing is left of them but the log of Spark."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as name, temporary_stack(Path(name) / "stack") as stack:
        session = quiet_session(stack.settings)
        try:
            yield Cluster(session, stack.endpoint("kafka"), Path(name))
        finally:
            session.stop()


def quiet_session(settings: Settings) -> SparkSession:
    """A session whose JVM, and the workers under it, write to a log file and not between the lines of the report."""
    log = read_settings().log_dir / "conformance-spark.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as file, _instead_of_output(file.fileno()):
        return start_session("conformance", jar_paths(settings, "spark"), "local[2]", polling_delay_ms=20)


@contextmanager
def _instead_of_output(descriptor: int) -> Iterator[None]:
    """What is started meanwhile has ``descriptor`` as its standard output and error."""
    sys.stdout.flush()
    kept = [(number, os.dup(number)) for number in (1, 2)]
    try:
        for number, _ in kept:
            os.dup2(descriptor, number)
        yield
    finally:
        for number, copy in kept:
            os.dup2(copy, number)
            os.close(copy)


@dataclass
class _Running:
    query: RunningQuery
    launch: Launch


class ServicesHost:
    """The topics and queries of one case."""

    def __init__(self, cluster: Cluster, prefix: str) -> None:
        self._cluster = cluster
        self._prefix = prefix
        self._admin = topics.admin(cluster.brokers)
        # A step goes out as one request, so that it is one batch: a row is never late against its own step.
        self._producer = Producer({"bootstrap.servers": cluster.brokers, "linger.ms": 100})
        self._running: dict[str, _Running] = {}
        self._readers: dict[str, _Reader] = {}

    def _own(self, name: str) -> str:
        return f"{self._prefix}.{name}"

    def create_topic(self, topic: str) -> None:
        topics.ensure(self._admin, {self._own(topic): 1})

    def send(self, topic: str, records: Iterable[Record]) -> None:
        for record in records:
            self._producer.produce(self._own(topic), key=record.key, value=record.value, timestamp=record.timestamp_ms)
        if self._producer.flush(_CALL_S):
            raise ServiceUnavailable("the broker did not take the input of a step", where=topic)

    def records(self, topic: str) -> Sequence[Record]:
        name = self._own(topic)
        reader = self._readers.setdefault(name, _Reader(self._cluster.brokers, name))
        return reader.to_the_end()

    def launch(self, query: Launch) -> None:
        self._running[query.name] = _Running(self._started(query), query)

    def _started(self, query: Launch) -> RunningQuery:
        name = self._own(query.name)
        return RunningQuery.start(
            self._cluster.session,
            self._prefixed(query.dataflow),
            name,
            output_topic=self._own(query.topic),
            brokers=self._cluster.brokers,
            checkpoint_dir=self._cluster.folder / "checkpoints" / name,
            fingerprint=query.fingerprint,
            plan=query.plan,
            snapshots=lambda: query.snapshots,
            settings=JobSettings(buckets=2, local_copy_dir=self._cluster.folder / "state"),
        )

    def _prefixed(self, dataflow: Dataflow) -> Dataflow:
        return replace(dataflow, scans=tuple(replace(scan, topic=self._own(scan.topic)) for scan in dataflow.scans))

    def settle(self) -> None:
        for running in self._running.values():
            ends = topics.end_offsets(self._admin, topics_of(self._prefixed(running.launch.dataflow)))
            running.query.await_drained(ends, timeout_s=DRAIN_S)
            if rejected := running.query.progress().counts[counts.REJECTED_RECORDS]:
                raise InternalError(f"{rejected} records of the case were rejected", where=running.launch.name)

    def restart(self, name: str) -> None:
        running = self._running[name]
        running.query.stop()
        running.query = self._started(running.launch)

    def close(self) -> None:
        for running in self._running.values():
            running.query.stop()
        for reader in self._readers.values():
            reader.close()


class _Reader:
    """A read_committed reader of a topic of one partition, which keeps what it has read."""

    def __init__(self, brokers: str, topic: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": brokers,
                "group.id": "conformance",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 20,
            }
        )
        self._place = TopicPartition(topic, 0)
        self._consumer.assign([TopicPartition(topic, 0, 0)])
        self._at = 0
        self._records: list[Record] = []

    def to_the_end(self) -> Sequence[Record]:
        """All records committed by now."""
        _, end = self._consumer.get_watermark_offsets(self._place, timeout=_CALL_S)
        while self._at < end:
            message = self._consumer.poll(_CALL_S)
            if message is None:
                raise ServiceUnavailable(f"{self._place.topic} cannot be read to its end")
            if message.error() is None:
                self._records.append(Record(message.key(), message.value(), message.timestamp()[1]))
            # The end of a transaction takes an offset that no message has, so the position counts.
            self._at = self._consumer.position([self._place])[0].offset
        return self._records

    def close(self) -> None:
        self._consumer.close()
