"""The runner: a process that keeps the queries of the catalog as their users want them. ``python -m spark_jobs.runner``

It looks at the catalog every so often, starts what is to run, stops what is to pause, cleans up after what is dropped,
and writes back state, error and progress. A query that fails does not touch the others.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaException
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from broker.presence import await_broker
from changelog.errors import DovetailError, InternalError, ServiceUnavailable
from joins.dataflow.graph import Dataflow
from runtime.leases import Leases
from runtime.query_plan import plan_of
from runtime.reconciler import Reconciler, Watched
from runtime.troubles import Patience, Setback
from spark_jobs.runner.job_settings import JobSettings
from spark_jobs.runner.query import RunningQuery, discard
from spark_jobs.runner.runner_settings import RunnerSettings
from spark_jobs.runner.spark_session import start_session, warm_up
from spark_jobs.runner.static_tables import table_of
from sql.catalog import Actual, Catalog, Query
from sql.fragments import Engine
from sql.planner import Plan, stream_of
from sql.syntax.redact import redacted

_LOG = logging.getLogger("dovetail.runner")
_LOOK_S = 0.2
# A failure says whether it passes, so none is a crash.
_FIRST_PAUSE_S = 1.0
_CRASHES = 1


class Runner:
    """The queries of one catalog in one session: a ``QueryDriver``."""

    def __init__(self, settings: RunnerSettings, session: SparkSession, catalog: Catalog) -> None:
        self._settings = settings
        self._session = session
        self._catalog = catalog
        self._running: dict[int, RunningQuery] = {}
        self._reported: dict[int, Mapping[str, Any]] = {}
        patience = Patience(_FIRST_PAUSE_S, settings.job.broker_wait_s, _CRASHES)
        leases = Leases(catalog, settings.brokers)
        self._reconciler = Reconciler(catalog, Engine.SPARK, self, patience, _LOG, leases=leases)

    def look(self) -> None:
        """One look at the catalog: bring every query nearer to what is wanted of it."""
        self._reconciler.look()

    def stop(self) -> None:
        """End all queries; they go on from their checkpoints at the next start."""
        for query in self._catalog.queries():
            if query.id in self._running:
                self.end(query)
                self._report(query, Actual.STOPPED)

    # -- one query

    def holds(self, query: Query) -> bool:
        return query.id in self._running

    def start(self, query: Query) -> Setback | None:
        try:
            self._running[query.id] = self._started(query)
        except Exception as failure:  # noqa: BLE001 - whatever is wrong with one query, the others go on
            return _setback(_as_error(failure, query))
        self._report(query, Actual.RUNNING, "")
        _LOG.info('query "%s": running', query.name)
        return None

    def _started(self, query: Query) -> RunningQuery:
        plan = plan_of(query, self._catalog)
        fragment = plan.fragment(query.name)
        checkpoint = Path(query.checkpoint or self._settings.checkpoints / f"{query.id}-{query.name}").absolute()
        if not query.checkpoint:
            self._catalog.set_checkpoint(query.id, str(checkpoint))
        return RunningQuery.start(
            self._session,
            fragment.dataflow,
            query.name,
            output_topic=query.topic,
            brokers=self._settings.brokers,
            checkpoint_dir=checkpoint,
            fingerprint=fragment.fingerprint,
            plan=fragment.explain(),
            snapshots=lambda: self._static_tables(fragment.dataflow),
            settings=self._job_settings(plan),
        )

    def _job_settings(self, plan: Plan) -> JobSettings:
        """The runner's settings, with what the query sets for itself."""
        job = replace(self._settings.job, late_topic=plan.settings.text("late_topic"))
        buckets = plan.settings.number("buckets")
        return replace(job, buckets=buckets) if buckets else job

    def _static_tables(self, dataflow: Dataflow) -> dict[str, pa.Table]:
        return {name: table_of(stream_of(self._catalog, name), self._settings.brokers) for name in dataflow.snapshots}

    def watch(self, query: Query) -> Watched:
        """Report how far it is, and what ended it.

        To be started again is no sign that a lost service is back: a batch that is committed is one.
        """
        running = self._running[query.id]
        try:
            error = running.error()
        except Exception as failure:  # noqa: BLE001 - the second launch, after the history, may fail like the first
            error = _as_error(failure, query)
        recovered = self._report_progress(query, running)
        if error is None:
            return Watched(recovered)
        self.end(query)
        return Watched(recovered, _setback(error))

    def _report_progress(self, query: Query, running: RunningQuery) -> bool:
        """Whether a batch was committed since the last report."""
        now = running.progress()
        progress = {
            "starts": running.first_offsets,
            "offsets": now.offsets,
            "counts": dict(now.counts),
            "late": dict(now.late),
            "batch": now.batch,
            "batch_ms": now.batch_ms,
        }
        before = self._reported.get(query.id)
        if before == progress:
            return False
        self._reported[query.id] = progress
        self._catalog.report(query.id, now_ms=_now_ms(), progress=progress)
        return before is not None and before["batch"] != now.batch

    def end(self, query: Query) -> bool:
        self._reported.pop(query.id, None)
        running = self._running.pop(query.id, None)
        if running is not None:
            running.stop()
            _LOG.info('query "%s": stopped', query.name)
        return True

    def discard(self, query: Query) -> bool:
        if query.checkpoint:
            discard(Path(query.checkpoint), self._settings.brokers, self._settings.job.local_copy_dir)
        return True

    def speaks_for(self, query: Query) -> bool:
        """There is one runner."""
        return True

    def _report(self, query: Query, actual: Actual, error: str | None = None) -> None:
        self._catalog.report(query.id, now_ms=_now_ms(), actual=actual, error=error)


def _setback(error: DovetailError) -> Setback:
    return Setback("waits for a service", redacted(str(error)), final=not error.retry)


def _as_error(failure: Exception, query: Query) -> DovetailError:
    match failure:
        case DovetailError():
            return failure
        case TimeoutError():
            return ServiceUnavailable("the broker did not answer in time", where=f'query "{query.name}"')
        case KafkaException():
            return ServiceUnavailable(
                f"the broker did not answer: {failure.args[0].str()}", where=f'query "{query.name}"'
            )
        case PySparkException():
            return InternalError(f"Spark did not start the query: {failure}", where=f'query "{query.name}"')
    _LOG.error('query "%s": a defect of Dovetail', query.name, exc_info=failure)
    return InternalError(f"{type(failure).__name__}: {failure}", where=f'query "{query.name}", at its start')


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def run(settings: RunnerSettings, stopped: threading.Event) -> None:
    """Look at the catalog until ``stopped``."""
    await_broker(settings.brokers, settings.broker_timeout_s, "the Spark runner")
    session = start_session(
        "dovetail", sorted(settings.jars.glob("*.jar")), settings.spark_master, settings.driver_memory
    )
    catalog = Catalog.open(settings.catalog_url)
    runner = Runner(settings, session, catalog)
    if settings.ready_file is not None:
        settings.ready_file.write_text(str(os.getpid()))
    # Whoever has waited for the runner has a statement to write yet.
    warm_up(session)
    _LOG.info("taking up queries, brokers %s", settings.brokers)
    while not stopped.wait(_LOOK_S):
        try:
            runner.look()
        except ServiceUnavailable as failure:
            _LOG.warning("the catalog is out of reach, looking again\n%s", failure)
    runner.stop()
    session.stop()
    catalog.close()
    _LOG.info("stopped")
