"""Spark for the tests: one session for all of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from dovetail.broker import clients
from dovetail.broker import topics as topic_admin
from dovetail.broker.address import BrokerAddress
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.runtime.storage.local_folder import LocalFolder
from dovetail.spark_jobs.runner.job_settings import JobSettings
from dovetail.spark_jobs.runner.query import RunningQuery

DRAIN_S = 120.0
_names = itertools.count(1)


class Queries:
    """Starts queries with a checkpoint of their own, and stops them at the end of the test."""

    def __init__(self, session: SparkSession, broker: str, folder: Path) -> None:
        self._session = session
        self._broker = broker
        self._folder = folder
        self._started: list[RunningQuery] = []

    def settings(self, **changed: object) -> JobSettings:
        chosen: dict[str, object] = {"buckets": 2, "local_copy_dir": self._folder / "copy", **changed}
        return JobSettings(**chosen)  # type: ignore[arg-type]

    def start(
        self,
        dataflow: Dataflow,
        name: str = "",
        plan: str = "Join l, r",
        snapshots: Mapping[str, pa.Table] | None = None,
        settings: JobSettings | None = None,
        checkpoint: Path | None = None,
    ) -> RunningQuery:
        """A name that was started before resumes, from the checkpoint that has its name or from another one."""
        name = name or self.new_name()
        query = RunningQuery.start(
            self._session,
            dataflow,
            name,
            output_topic=name,
            brokers=BrokerAddress(self._broker),
            storage=LocalFolder(checkpoint or self._folder / name),
            fingerprint=str(hash(plan)),
            plan=plan,
            snapshots=lambda: snapshots or {},
            settings=settings or self.settings(),
        )
        self._started.append(query)
        return query

    def checkpoint(self, name: str) -> Path:
        return self._folder / name

    @staticmethod
    def new_name() -> str:
        return f"query{next(_names)}"

    def drain(self, query: RunningQuery, dataflow: Dataflow) -> None:
        """Wait until ``query`` has taken in all that its inputs hold now; raise what ended it."""
        ends = topic_admin.end_offsets(clients.admin(BrokerAddress(self._broker)), dataflow.topics)
        query.await_read(ends, timeout_s=DRAIN_S)

    def stop_all(self) -> None:
        for query in self._started:
            query.stop()


@pytest.fixture
def queries(spark: SparkSession, broker: str, tmp_path: Path) -> Iterator[Queries]:
    started = Queries(spark, broker, tmp_path)
    yield started
    started.stop_all()


@pytest.fixture
def run(queries: Queries) -> Callable[[Dataflow], str]:
    """Runs a dataflow over what its inputs hold; the name of its output topic."""

    def to_the_end(dataflow: Dataflow) -> str:
        name = queries.new_name()
        queries.drain(queries.start(dataflow, name), dataflow)
        return name

    return to_the_end
