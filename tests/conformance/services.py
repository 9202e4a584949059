"""The services host: a real broker, and Spark in this process; topics and queries of a case carry its own prefix."""

from __future__ import annotations

import itertools
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol
from zlib import crc32

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from pyspark.sql import SparkSession

from dovetail.broker import clients, topics
from dovetail.broker.address import BrokerAddress
from dovetail.broker.topic_shapes import TopicAdmin
from dovetail.changelog.errors import InternalError, ServiceUnavailable
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.runtime.settings import Settings, read_settings
from dovetail.runtime.storage.local_folder import LocalFolder
from dovetail.services.jars import jar_paths
from dovetail.services.stack import temporary_stack
from dovetail.spark_jobs.exchange.report import REJECTED_RECORDS
from dovetail.spark_jobs.runner.job_settings import JobSettings
from dovetail.spark_jobs.runner.query import RunningQuery
from dovetail.spark_jobs.runner.spark_session import start_session
from dovetail.sql.catalog import Catalog
from dovetail.sql.engines import Engine
from dovetail.sql.syntax.statements import System
from tests.conformance.case import Case
from tests.conformance.engine import NotRunnable
from tests.conformance.external import Database
from tests.conformance.host import Launch
from tests.conformance.records import Record
from tests.conformance.runner import Outcome, run_case
from tests.conformance.servers import Servers, own_servers, redis_url
from tests.conformance.sql_engine import SqlEngine
from tests.conformance.workers import WorkerEnvironment, WorkerQuery, shared_catalog

AT_ONCE = 2
"""Cases that run side by side: most of a small batch is waiting."""
DRAIN_S = 240.0
_CALL_S = 30.0
_LONGEST_WAIT_MS = 10_000


@dataclass(frozen=True)
class Cluster:
    """What all cases share."""

    session: SparkSession
    brokers: str
    folder: Path
    servers: Servers
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        """The outcomes in the order of the cases."""
        self.servers.start_for(cases)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            yield from pool.map(lambda case: run_case(case, self._engine), cases)

    def _engine(self, case: Case) -> SqlEngine:
        return SqlEngine(ServicesHost(self, f"case{next(self.numbers)}.{case.id}"), case.lookup_tables)

    @property
    def databases(self) -> Mapping[str, Database]:
        return self.servers.databases


@contextmanager
def own_cluster() -> Iterator[Cluster]:
    """A broker and a session for one run; nothing is left of them but the log of Spark."""
    with (
        tempfile.TemporaryDirectory(prefix="conformance-") as name,
        temporary_stack(Path(name) / "stack", ("kafka", "redis")) as stack,
        own_servers(Path(name) / "servers", redis_url(stack)) as servers,
    ):
        session = quiet_session(stack.settings)
        try:
            yield Cluster(session, stack.endpoint("kafka"), Path(name), servers)
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


class _Running(Protocol):
    """A fragment that runs."""

    def settle(self) -> None: ...

    def restart(self) -> None: ...

    def stop(self) -> None: ...


class ServicesHost:
    """The topics and queries of one case."""

    def __init__(self, cluster: Cluster, prefix: str) -> None:
        self._cluster = cluster
        self._prefix = prefix
        self._admin = clients.admin(BrokerAddress(cluster.brokers))
        # A step goes out as one request, when it is flushed, so that it is one batch: a row is never late against its
        # own step, however slow the machine is.
        self._producer = Producer({"bootstrap.servers": cluster.brokers, "linger.ms": 10_000})
        self._running: dict[str, _Running] = {}
        self._readers: dict[str, _Reader] = {}
        self._catalog: Catalog | None = None

    def _own(self, name: str) -> str:
        return f"{self._prefix}.{name}"

    @property
    def databases(self) -> Mapping[str, Database]:
        return self._cluster.databases

    @property
    def prefix(self) -> str:
        return re.sub(r"\W", "_", self._prefix) + "_"

    def create_topic(self, topic: str) -> None:
        topics.ensure(self._admin, {self._own(topic): 1})

    def send(self, topic: str, records: Iterable[Record]) -> None:
        refused: list[str] = []

        def note(error: KafkaError | None, _: object) -> None:
            refused.extend([error.str()] if error is not None else [])

        for record in records:
            self._producer.produce(
                self._own(topic), record.value, record.key, timestamp=record.timestamp_ms, on_delivery=note
            )
        if self._producer.flush(_CALL_S) or refused:
            message = ": ".join(["the broker did not take the input of a step", *refused[:1]])
            raise ServiceUnavailable(message, where=topic)

    def records(self, topic: str) -> Sequence[Record]:
        name = self._own(topic)
        reader = self._readers.setdefault(name, _Reader(self._cluster.brokers, name))
        return reader.to_the_end()

    def launch(self, query: Launch) -> None:
        if query.fragment.engine is Engine.FAUST:
            catalog = self._worker_catalog(query.catalog)
            self._running[query.name] = WorkerQuery.started(self._environment, catalog, query, self._own)
        else:
            self._running[query.name] = _SparkQuery(self._cluster, query, self._own)

    def _worker_catalog(self, catalog: Catalog) -> Catalog:
        """The case's relations for worker processes, made when the first one starts, each over the case's own topic."""
        if self._catalog is None:
            self._catalog = shared_catalog(self._environment.catalog_url, catalog, self._own)
        return self._catalog

    @property
    def _environment(self) -> WorkerEnvironment:
        folder = self._cluster.folder / "workers"
        catalog_url = f"sqlite:///{folder / self.prefix}catalog.db"
        return WorkerEnvironment(self._cluster.brokers, self._cluster.servers.redis_url, folder, catalog_url)

    def settle(self) -> None:
        for running in self._running.values():
            running.settle()

    def restart(self, name: str) -> None:
        self._running[name].restart()

    def pass_time(self, ms: int) -> None:
        if ms > _LONGEST_WAIT_MS:
            raise NotRunnable(f"no case waits {ms / 1000:g} s")
        time.sleep(ms / 1000)

    def run(self, statement: System) -> None:
        raise NotRunnable("no statement can be run while the query runs", where=statement.text)

    def close(self) -> None:
        for running in self._running.values():
            running.stop()
        for reader in self._readers.values():
            reader.close()
        if self._catalog is not None:
            self._catalog.close()


class _SparkQuery:
    """A fragment in the Spark of this process."""

    def __init__(self, cluster: Cluster, launch: Launch, own: Callable[[str], str]) -> None:
        self._cluster = cluster
        self._launch = launch
        self._own = own
        self._query = self._started()

    def _started(self) -> RunningQuery:
        name, fragment = self._own(self._launch.name), self._launch.fragment
        return RunningQuery.start(
            self._cluster.session,
            self._dataflow,
            name,
            output_topic=self._own(self._launch.topic),
            brokers=BrokerAddress(self._cluster.brokers),
            storage=LocalFolder(self._cluster.folder / "checkpoints" / name),
            fingerprint=fragment.fingerprint,
            plan=fragment.explain(),
            snapshots=lambda: self._launch.snapshots,
            settings=JobSettings(buckets=_buckets(name), local_copy_dir=self._cluster.folder / "state"),
        )

    @property
    def _dataflow(self) -> Dataflow:
        dataflow = self._launch.fragment.dataflow
        return replace(dataflow, scans=tuple(replace(scan, topic=self._own(scan.topic)) for scan in dataflow.scans))

    def settle(self) -> None:
        ends = topics.end_offsets(clients.admin(BrokerAddress(self._cluster.brokers)), self._dataflow.topics)
        self._query.await_read(ends, timeout_s=DRAIN_S)
        # A commit is answered before its records can be read.
        TopicAdmin(BrokerAddress(self._cluster.brokers), DRAIN_S).quiescent_ends(self._own(self._launch.topic))
        if rejected := self._query.progress().counts[REJECTED_RECORDS]:
            raise InternalError(f"{rejected} records of the case were rejected", where=self._launch.name)

    def restart(self) -> None:
        self._query.stop()
        self._query = self._started()

    def stop(self) -> None:
        self._query.stop()


def _buckets(query: str) -> int:
    """Half of the queries run in one bucket, in one task; half in two, with exchanges."""
    return 1 + crc32(query.encode()) % 2


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
