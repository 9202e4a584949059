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
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from confluent_kafka import KafkaException
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from broker import clients
from broker.address import BrokerAddress
from changelog.errors import DovetailError, InternalError, ServiceUnavailable
from joins.dataflow.graph import Dataflow
from spark_jobs.runner.job_settings import JobSettings
from spark_jobs.runner.query import RunningQuery, discard
from spark_jobs.runner.runner_settings import RunnerSettings
from spark_jobs.runner.spark_session import start_session, warm_up
from spark_jobs.runner.static_tables import table_of
from sql.catalog import Actual, Catalog, Desired, Query
from sql.fragments import Engine
from sql.planner import Plan, plan_query, stream_of
from sql.syntax.parse import parse_one
from sql.syntax.redact import redacted
from sql.syntax.statements import CreateView, Select

_LOG = logging.getLogger("dovetail.runner")
_LOOK_S = 0.2
_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 15.0


@dataclass
class Outage:
    """A query that waits for a service: since when, and until when it pauses before the next attempt.

    To be started again is no sign that the service is back: the outage ends with a batch that is committed, or when the
    query has run for ``broker_wait_s``.
    """

    since_s: float
    pause_s: float
    next_s: float


class Runner:
    """The queries of one catalog in one session."""

    def __init__(self, settings: RunnerSettings, session: SparkSession, catalog: Catalog) -> None:
        self._settings = settings
        self._session = session
        self._catalog = catalog
        self._running: dict[int, RunningQuery] = {}
        self._reported: dict[int, Mapping[str, Any]] = {}
        self._outages: dict[int, Outage] = {}

    def look(self) -> None:
        """One look at the catalog: bring every query nearer to what is wanted of it."""
        for query in self._catalog.queries(dropped=True):
            if query.engine != Engine.SPARK:
                continue
            match query.desired:
                case Desired.RUNNING:
                    self._run(query)
                case Desired.PAUSED:
                    self._pause(query)
                case Desired.DROPPED:
                    self._drop(query)

    def stop(self) -> None:
        """End all queries; they go on from their checkpoints at the next start."""
        for query in self._catalog.queries():
            if query.id in self._running:
                self._end(query)
                self._report(query, Actual.STOPPED)

    # -- one query

    def _run(self, query: Query) -> None:
        if query.id in self._running:
            self._watch(query, self._running[query.id])
        elif query.actual is not Actual.FAILED and self._may_try(query):
            self._attempt(query)

    def _attempt(self, query: Query) -> None:
        _LOG.info('query "%s": starting', query.name)
        try:
            self._running[query.id] = self._start(query)
        except Exception as failure:  # noqa: BLE001 - whatever is wrong with one query, the others go on
            self._failed(query, _as_error(failure, query))
        else:
            self._report(query, Actual.RUNNING, "")
            _LOG.info('query "%s": running', query.name)

    def _start(self, query: Query) -> RunningQuery:
        plan = _plan(query, self._catalog)
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

    def _watch(self, query: Query, running: RunningQuery) -> None:
        """Report how far it is, and what ended it."""
        try:
            error = running.error()
        except Exception as failure:  # noqa: BLE001 - the second launch, after the history, may fail like the first
            error = _as_error(failure, query)
        self._report_progress(query, running)
        if error is not None:
            self._end(query)
            self._failed(query, error)

    def _report_progress(self, query: Query, running: RunningQuery) -> None:
        now = running.progress()
        progress = {
            "starts": running.starts,
            "offsets": now.offsets,
            "counts": dict(now.counts),
            "late": dict(now.late),
            "batch": now.batch,
            "batch_ms": now.batch_ms,
        }
        before = self._reported.get(query.id)
        if before != progress:
            self._reported[query.id] = progress
            if before is not None and before["batch"] != now.batch:
                self._outages.pop(query.id, None)
            self._catalog.report(query.id, now_ms=_now_ms(), progress=progress)

    def _pause(self, query: Query) -> None:
        self._end(query)
        self._outages.pop(query.id, None)
        if query.actual is not Actual.PAUSED:
            self._report(query, Actual.PAUSED)

    def _drop(self, query: Query) -> None:
        self._end(query)
        if query.checkpoint:
            discard(Path(query.checkpoint), self._settings.brokers, self._settings.job.local_copy_dir)
        self._catalog.forget_query(query.id)
        _LOG.info('query "%s": dropped', query.name)

    def _end(self, query: Query) -> None:
        self._reported.pop(query.id, None)
        running = self._running.pop(query.id, None)
        if running is not None:
            running.stop()
            _LOG.info('query "%s": stopped', query.name)

    # -- failures

    def _failed(self, query: Query, error: DovetailError) -> None:
        """A lost service is waited for, up to ``broker_wait_s``; anything else ends the query."""
        told = redacted(str(error))
        wait_s = self._settings.job.broker_wait_s
        now_s = time.monotonic()
        outage = self._outages.get(query.id)
        if outage is not None and now_s - outage.next_s > wait_s:
            outage = None
        since_s = outage.since_s if outage else now_s
        if error.retry and now_s - since_s < wait_s:
            pause_s = min(2 * outage.pause_s, _LONGEST_PAUSE_S) if outage else _FIRST_PAUSE_S
            self._outages[query.id] = Outage(since_s, pause_s, now_s + pause_s)
            self._report(query, Actual.PENDING, told)
            _LOG.warning('query "%s": waits for a service, next attempt in %g s\n%s', query.name, pause_s, told)
            return
        self._outages.pop(query.id, None)
        self._report(query, Actual.FAILED, told)
        _LOG.error('query "%s": failed\n%s', query.name, told)

    def _may_try(self, query: Query) -> bool:
        outage = self._outages.get(query.id)
        return outage is None or time.monotonic() >= outage.next_s

    def _report(self, query: Query, actual: Actual, error: str | None = None) -> None:
        self._catalog.report(query.id, now_ms=_now_ms(), actual=actual, error=error)


def _plan(query: Query, catalog: Catalog) -> Plan:
    statement = parse_one(query.sql)
    if not isinstance(statement, Select | CreateView):
        raise InternalError(f'"{query.name}" is no query', where="the catalog")
    return plan_query(query.view or query.name, statement, catalog)


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


def await_broker(brokers: BrokerAddress, timeout_s: float) -> None:
    """Return once the broker answers; ServiceUnavailable after the time."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            clients.admin(brokers).list_topics(timeout=min(5.0, timeout_s))
            return
        except KafkaException as failure:
            if time.monotonic() > deadline:
                raise ServiceUnavailable(
                    f"no broker answered at {brokers} within {timeout_s:g} s: {failure.args[0].str()}",
                    where="the Spark runner",
                    fix="start the broker (dovetail up), or set DOVETAIL_BROKERS to where it listens",
                ) from failure


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def run(settings: RunnerSettings, stopped: threading.Event) -> None:
    """Look at the catalog until ``stopped``."""
    await_broker(settings.brokers, settings.broker_timeout_s)
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
