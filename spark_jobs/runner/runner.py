"""The runner, ``python -m dovetail.spark_jobs.runner``: a process that keeps the queries of the catalog as users want.

It looks at the catalog every so often, starts what is to run, stops what is to pause, cleans up after what is dropped,
and writes back state, error and progress. A query that fails does not touch the others.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dovetail.broker.presence import BrokerWatch, await_broker
from dovetail.changelog.errors import DovetailError, EnvironmentFault, InternalError, ServiceUnavailable, StorageRefused
from dovetail.changelog.work.backoff import Backoff
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.joins.host.activity import Activity
from dovetail.runtime.clock import now_ms
from dovetail.runtime.generated_streams import GeneratedStreams
from dovetail.runtime.health_server import HealthServer, HealthStatus, own_requests_only
from dovetail.runtime.leases import Leases
from dovetail.runtime.logs.query_logs import QueryLog
from dovetail.runtime.processes.listener import listening
from dovetail.runtime.processes.processor_time import used_by_this_process_and_its_own
from dovetail.runtime.query_plan import view_to_succeed
from dovetail.runtime.reconciler import Reconciler, Watched
from dovetail.runtime.retry_state import Failure
from dovetail.runtime.sole_holder import SoleHolder
from dovetail.runtime.storage.claim import claim
from dovetail.runtime.storage.places import expect_usable
from dovetail.runtime.storage.storage import Storage
from dovetail.runtime.storage.watch import StorageWatch
from dovetail.runtime.wanted import WantedWatch
from dovetail.spark_jobs.account.progress import Progress
from dovetail.spark_jobs.exchange.bucket_keys import bucket_keys
from dovetail.spark_jobs.rescaling.outgrown import OutgrownViews
from dovetail.spark_jobs.rescaling.rescale import rescale, retire_leftovers
from dovetail.spark_jobs.runner.executor_watch import ExecutorWatch, master_answers, master_away
from dovetail.spark_jobs.runner.failure import of_driver, of_session
from dovetail.spark_jobs.runner.figures import QueriesFigures
from dovetail.spark_jobs.runner.inactivity import Inactivity
from dovetail.spark_jobs.runner.java_heap import give_memory_back
from dovetail.spark_jobs.runner.job_settings import JobSettings
from dovetail.spark_jobs.runner.jvm_watch import JvmWatch
from dovetail.spark_jobs.runner.launch import Launcher, megabytes, stopping
from dovetail.spark_jobs.runner.packed_query import PackedQuery
from dovetail.spark_jobs.runner.packs import Packs
from dovetail.spark_jobs.runner.query import RunningQuery
from dovetail.spark_jobs.runner.runner_settings import RunnerSettings
from dovetail.spark_jobs.runner.spark_session import is_local, start_session
from dovetail.spark_jobs.runner.warm_up import warm_up, warm_up_state
from dovetail.spark_jobs.source.ends_watch import ends_watch
from dovetail.spark_jobs.state.checkpoint import Checkpoint
from dovetail.spark_jobs.state.removal import discard
from dovetail.sql.catalog import Actual, Catalog, Desired, Query
from dovetail.sql.engines import Engine
from dovetail.sql.planner import Plan
from dovetail.sql.syntax.redact import redacted

_LOG = logging.getLogger("dovetail.runner")
_LOOK_S = 0.2
_CALM_LOOK_S = 0.5
_STALE_S = 10.0
_IDLE_S = 1.0
"""A session that has had nothing to do for so long gets ready for a query of several buckets."""
_PAUSES = Backoff(first_s=1.0, longest_s=15.0)
_TASKS = 32
"""Queries that are started, watched or ended at once: they wait more than they work."""


@dataclass(frozen=True)
class NotRescaled:
    """A query could not be cut into so many buckets, and goes on with those that it has."""

    buckets: int
    why: str


@dataclass(frozen=True)
class BatchActivity:
    """What the nodes of a query had done until a batch."""

    by: RunningQuery | PackedQuery
    batch: int
    document: Mapping[str, Any]


class Runner:
    """The queries of one catalog in one session: a ``QueryDriver``."""

    def __init__(self, settings: RunnerSettings, session: SparkSession, catalog: Catalog) -> None:
        self._settings = settings
        self._session = session
        self._catalog = catalog
        self._launcher = Launcher(settings, session, catalog)
        self._running: dict[int, RunningQuery | PackedQuery] = {}
        self._reported: dict[int, Mapping[str, Any]] = {}
        self._activities: dict[int, BatchActivity] = {}
        self._counted_before: dict[int, Progress] = {}
        self._texts: dict[int, str] = {}
        """Of the queries that run, as the catalog had them at their start."""
        self._not_rescaled: dict[int, NotRescaled] = {}
        self._outgrown = OutgrownViews()
        self._broker = BrokerWatch(settings.brokers)
        self._broker.start()
        self.executors = ExecutorWatch.of(session)
        if self.executors is not None:
            self.executors.start()
        self._jvm = JvmWatch.of(session)
        self._jvm.start()
        self._storage = StorageWatch(settings.checkpoints)
        self._storage.start()
        self._inactivity = Inactivity(used_by_this_process_and_its_own)
        self.looked_s = time.monotonic()
        self._tasks = ThreadPoolExecutor(_TASKS, thread_name_prefix="query")
        self._packs = Packs(
            self._launcher, self._running, self._tasks, noted=self._report_progress, trouble=lambda: self.trouble
        )
        self._packs.tidy()
        self._generated = GeneratedStreams(catalog, settings.brokers)
        self._reconciler = Reconciler(
            catalog,
            Engine.SPARK,
            self,
            _PAUSES,
            _LOG,
            tasks=self._tasks,
            leases=Leases(catalog, settings.brokers, settings.query_logs),
        )

    def look(self) -> None:
        """One look at the catalog: bring every query nearer to what is wanted of it."""
        if self._packs.wanted:
            self._look_at_packs()
        self._reconciler.look()
        self._generated.look()
        self._inactivity.look()
        self.looked_s = time.monotonic()

    def _look_at_packs(self) -> None:
        """Which views share their batches is of less weight than that all of them run."""
        queries = self._catalog.queries()
        try:
            self._packs.look(queries, self._reconciler.busy)
        except ServiceUnavailable:
            raise
        except Exception:  # noqa: BLE001 - as it says
            _LOG.exception("packs cannot be looked at: a defect of Dovetail")

    def warm_up(self) -> None:
        """Where nothing runs, and the executors are this process, use the time."""
        if not self._running and not self._reconciler.busy and is_local(self._settings.spark_master):
            self._tasks.submit(self._warm_up)

    def _warm_up(self) -> None:
        try:
            warm_up_state(self._session)
        except (PySparkException, Py4JError, OSError) as failure:
            # Whatever is wrong with the session, the first query will say.
            _LOG.debug("the session could not get ready: %s", failure)

    @property
    def pause_s(self) -> float:
        """Until the next look."""
        return _CALM_LOOK_S if self._reconciler.calm else _LOOK_S

    def stop(self) -> None:
        """End all queries; they go on from their checkpoints at the next start."""
        self._tasks.shutdown(cancel_futures=True)
        self._end_watches()
        ran = [query for query in self._catalog.queries() if query.id in self._running]
        self._packs.stop_all()
        self._generated.stop()
        for query in ran:
            self._stop(query)
            self._report(query, Actual.STOPPED)

    def abandon(self, why: DovetailError) -> None:
        """Say of all queries that they are not running: this process cannot go on, and its successor will."""
        self._tasks.shutdown(wait=False, cancel_futures=True)
        self._end_watches()
        for query in self._catalog.queries():
            if self._running.pop(query.id, None) is not None:
                self._report(query, Actual.RECOVERING, redacted(str(why)))

    def _end_watches(self) -> None:
        self._broker.stop()
        self._storage.stop()
        self._jvm.stop()
        if self.executors is not None:
            self.executors.stop()

    @property
    def trouble(self) -> str:
        """Why no query can get on now; '' where nothing is known of it."""
        of_executors = "" if self.executors is None else self.executors.trouble
        return self._broker.trouble or self._storage.trouble or of_executors or self._jvm.trouble

    def look_for_session(self) -> None:
        """Raises EnvironmentFault where this process will not get on any more, and another one might."""
        if not self.session_lives:
            raise EnvironmentFault("Spark's JVM has gone", where="the Spark runner", fix="the runner starts again")
        if used_up := self._jvm.used_up:
            raise EnvironmentFault(used_up, where="the Spark runner", fix="the runner starts again")
        if self.executors is not None and self.executors.is_forgotten:
            raise EnvironmentFault(
                "the master of Spark was restarted, and does not know this session",
                where=f"DOVETAIL_SPARK_MASTER {self._settings.spark_master}",
                fix="the runner starts again",
            )

    @property
    def session_lives(self) -> bool:
        return self._launcher.session_lives

    def healthy(self) -> HealthStatus:
        """Whether it looks after its queries."""
        silent_s = time.monotonic() - self.looked_s
        watched = ends_watch(self._settings.brokers).is_healthy
        return HealthStatus(silent_s < _STALE_S and self.session_lives and watched, {"queries": len(self._running)})

    def ready(self) -> HealthStatus:
        """Whether all queries that are to run do."""
        wanted = [query for query in self._catalog.queries() if query.engine == Engine.SPARK]
        states = {query.name: query.actual.value for query in wanted if query.desired is Desired.RUNNING}
        healthy = all(state == Actual.RUNNING.value for state in states.values())
        return HealthStatus(self.healthy().holds and healthy, {"queries": states})

    # -- one query

    def holds(self, query: Query) -> bool:
        return query.id in self._running or self._packs.moves(query)

    def start(self, query: Query) -> Failure | None:
        self._texts[query.id] = query.sql
        self._counted_before[query.id] = counted(query.progress)
        if self.executors is not None and (trouble := self.executors.trouble):
            return Failure(trouble)
        try:
            started = self._started(query)
        except Exception as failure:  # noqa: BLE001 - whatever is wrong with one query, the others go on
            error = self._error(failure, query)
            # Of a query that never ran nobody expects that it goes on by itself: whoever creates it is told.
            final = isinstance(error, StorageRefused) and not query.progress
            return replace(Failure.of(error), final=final or not error.retry)
        if started is None:
            return None
        self._running[query.id] = started
        # Now, and not at the next look: who has begun, and lost its checkpoint, must not begin afresh.
        with suppress(ServiceUnavailable, Py4JError, OSError):
            self._report_progress(query, started)
        return None

    def _started(self, query: Query) -> RunningQuery | PackedQuery | None:
        """None where it is to be looked at again."""
        query = self._launcher.as_it_is(query)
        self._counted_before[query.id] = counted(query.progress)
        if self._packs.pack_of(query) is not None:
            packed = self._packs.started(query)
            query = self._launcher.as_it_is(query)
            if packed is not None or self._packs.pack_of(query) is not None:
                return packed
        self._counted_before[query.id] = counted(query.progress)
        plan = self._launcher.plan(query)
        fragment = plan.fragment(query.name)
        checkpoint = self._launcher.checkpoint(query)
        if not query.checkpoint:
            self._catalog.set_checkpoint(query.id, checkpoint.location)
        elif "starts" in query.progress and Checkpoint(checkpoint).origin() is None:
            raise EnvironmentFault(
                f'the checkpoint of "{query.name}" is gone, and the query has run before: to start afresh would write'
                " its rows a second time",
                where=checkpoint.location,
                fix="mount its volume or restore it from a backup: the query goes on by itself then; or drop the query"
                " and create it again",
            )
        settings = self._launcher.job_settings(plan)
        retire_leftovers(checkpoint, self._settings.brokers, settings.local_copy_dir)
        origin = Checkpoint(checkpoint).origin()
        if origin is not None and self._is_to_be_rescaled(query, plan, origin.buckets):
            drain_only = replace(settings, drain_only=True)
            with stopping(self._launcher.started(query, fragment, checkpoint, drain_only)) as settling:
                self._report_rescaling(query, origin.buckets, settings.buckets)
                settling.await_drained()
                self._report_progress(query, settling)
            self._counted_before[query.id] = counted(self._catalog.query(query.name).progress)
            checkpoint = self._rescaled(query, fragment.dataflow, checkpoint, origin.buckets, settings)
        return self._launcher.started(query, fragment, checkpoint, settings)

    def _is_to_be_rescaled(self, query: Query, plan: Plan, buckets: int) -> bool:
        """Whether its text names another number of buckets, to which it has not failed to be cut already."""
        wanted = plan.settings.number("buckets") or self._grown_to(query, buckets)
        failed = self._not_rescaled.get(query.id)
        if failed is not None and failed.buckets == wanted:
            return False
        self._not_rescaled.pop(query.id, None)
        return wanted is not None and wanted != buckets

    def _grown_to(self, query: Query, buckets: int) -> int | None:
        """The buckets that a query is to have which nobody has given a number, and which has outgrown its one."""
        job = self._settings.job
        if buckets == 1 and job.few_buckets and self._outgrown.has(query.id, time.monotonic()):
            return job.buckets
        return None

    def _rescaled(
        self, query: Query, dataflow: Dataflow, checkpoint: Storage, before: int, settings: JobSettings
    ) -> Storage:
        """The checkpoint with which the query goes on: another one; or the same where that cannot be made."""
        log, after = QueryLog(_LOG, query.name), settings.buckets
        self._outgrown.forget(query.id)
        begun_s = time.monotonic()

        def report(size: int) -> None:
            self._report_rescaling(query, before, after, size)

        try:
            made = rescale(self._session, dataflow, query.name, checkpoint, bucket_keys(before), after, report)
        except Exception as failure:
            error = self._error(failure, query)
            if not self.session_lives:
                raise error from failure
            self._not_rescaled[query.id] = NotRescaled(after, redacted(str(error)))
            log.warning("it stays at %d buckets, and could not be cut into %d\n%s", before, after, error)
            return checkpoint
        # From here on the other one counts.
        if not self._catalog.switch_checkpoint(query.id, checkpoint.location, made.checkpoint.location):
            raise EnvironmentFault(
                "another process has given the query another checkpoint",
                where=checkpoint.location,
                fix="run one runner for each catalog",
            )
        log.info(
            "rescaled from %d to %d buckets: %s rows, %s in %.1f s",
            before, after, f"{made.rows:,}", megabytes(made.bytes), time.monotonic() - begun_s,
        )  # fmt: skip
        self._counted_before[query.id].state.clear()
        self._counted_before[query.id].activity.held.clear()
        retire_leftovers(made.checkpoint, self._settings.brokers, settings.local_copy_dir)
        return made.checkpoint

    def _report_rescaling(self, query: Query, before: int, after: int, size: int = 0) -> None:
        said = f"from {before} to {after} buckets, {megabytes(size)} written"
        self._report(query, Actual.RESCALING, said)

    def watch(self, query: Query) -> Watched:
        """Report how far it is, and what ended it."""
        running = self._running.get(query.id)
        if running is None or self._packs.moves(query):
            return Watched()
        if isinstance(running, PackedQuery) and self._packs.has_stopped(running):
            # For another member, before this one was noted here.
            self._running.pop(query.id, None)
            return Watched()
        if self._texts[query.id] != query.sql or self._grown_to(query, running.buckets):
            self._texts[query.id] = query.sql
            if self._is_to_be_rescaled(query, self._launcher.plan(query), running.buckets):
                if isinstance(running, PackedQuery):
                    self._packs.put_out(query, "it is to have other buckets")
                self._report(query, Actual.RESCALING, "")
                self._stop(query)
                return Watched()
        try:
            error = running.error() or self._hung(running)
            healthy = error is None and running.at_work
            self._report_progress(query, running)
            self._note_load(query, running)
        except ServiceUnavailable:
            raise  # the catalog is away, and the query may be well
        except Exception as failure:  # noqa: BLE001 - the JVM may be gone
            error, healthy = self._error(failure, query), False
        if error is not None:
            return Watched(failure=self._ended(query, running, error))
        trouble = self.trouble or running.waits
        healthy = healthy and not trouble
        if healthy and isinstance(running, PackedQuery):
            self._packs.mark_healthy(running)
        return Watched(healthy, trouble)

    def _hung(self, running: RunningQuery | PackedQuery) -> DovetailError | None:
        """Elsewhere than on this machine nobody knows whether somebody works."""
        under_way_s = running.under_way_s
        if not (is_local(self._settings.spark_master) and self._inactivity.hangs(under_way_s)):
            return None
        return EnvironmentFault(
            f"a batch has been under way for {under_way_s:.0f} s, and no process works on it",
            where="the Spark runner",
            fix="the query starts again, and runs the batch again",
        )

    def _note_load(self, query: Query, running: RunningQuery | PackedQuery) -> None:
        if isinstance(running, PackedQuery) or running.at_rest:
            self._outgrown.forget(query.id)
        else:
            now = running.progress()
            self._outgrown.note(query.id, now.batch, now.batch_ms, time.monotonic())

    def _ended(self, query: Query, running: RunningQuery | PackedQuery, error: DovetailError) -> Failure:
        """A member of a pack has not failed yet: whether it does is seen when it runs alone."""
        if isinstance(running, PackedQuery):
            self._packs.failed(query, running, error)
            return Failure(f"its pack has ended: {redacted(str(error))}")
        self._stop(query)
        return Failure.of(self._unless_the_session_has_gone(error, query, None))

    def _error(self, failure: Exception, query: Query) -> DovetailError:
        error = of_driver(failure, query.name)
        return self._unless_the_session_has_gone(error, query, failure)

    def _unless_the_session_has_gone(
        self, error: DovetailError, query: Query, failure: Exception | None
    ) -> DovetailError:
        """Spark that is going down says all kinds of things."""
        if not isinstance(error, InternalError):
            return error
        if not self.session_lives:
            return EnvironmentFault(
                "Spark is going down", where=f'query "{query.name}"', fix="the runner starts again by itself"
            )
        if failure is not None:
            QueryLog(_LOG, query.name).error("a defect of Dovetail", exc_info=failure)
        return error

    def _report_progress(self, query: Query, running: RunningQuery | PackedQuery) -> None:
        now, before = running.progress(), self._counted_before[query.id]
        progress = {
            "starts": running.first_offsets,
            "offsets": now.offsets,
            "counts": _added(before.counts, now.counts),
            "late": _added(before.late, now.late),
            "batch": now.batch,
            "batch_ms": now.batch_ms,
            "under_way_s": _tens(running.under_way_s),
            "state": {**before.state, **now.state},
            "watermarks": {**before.watermarks, **now.watermarks},
            "held_by": {**before.held_by, **now.held_by},
            "activity": self._activity(query, running),
            "buckets": running.buckets,
        }
        if isinstance(running, PackedQuery):
            progress["packed_with"] = list(running.beside)
        if (failed := self._not_rescaled.get(query.id)) is not None:
            progress["not_rescaled"] = {"buckets": failed.buckets, "why": failed.why}
        if self._reported.get(query.id) != progress:
            self._catalog.report(query.id, now_ms=now_ms(), progress=progress)
            self._reported[query.id] = progress

    def _activity(self, query: Query, running: RunningQuery | PackedQuery) -> Mapping[str, Any]:
        """The document of what its nodes have done in all its lives; made once for each batch."""
        now = running.progress()
        known = self._activities.get(query.id)
        if known is None or known.by is not running or known.batch != now.batch:
            whole = Activity()
            for part in (self._counted_before[query.id].activity, now.activity):
                whole.add(part)
            known = self._activities[query.id] = BatchActivity(running, now.batch, whole.document())
        return known.document

    def end(self, query: Query) -> bool:
        if self._packs.moves(query):
            return False
        if self._packs.pack_of(query) is not None:
            self._packs.put_out(query, "it is not to run")
        self._stop(query)
        return True

    def _stop(self, query: Query) -> None:
        """Of one that runs alone; a pack stops as a whole."""
        self._activities.pop(query.id, None)
        self._reported.pop(query.id, None)
        running = self._running.pop(query.id, None)
        if isinstance(running, RunningQuery):
            try:
                running.stop()
            except (Py4JError, OSError) as failure:
                QueryLog(_LOG, query.name).warning("it ended with the JVM: %s", failure)
            else:
                QueryLog(_LOG, query.name).info("stopped")

    def discard(self, query: Query) -> bool:
        query = self._launcher.as_it_is(query)
        if self._packs.pack_of(query) is not None:
            self._packs.put_out(query, "it is dropped")
            query = self._launcher.as_it_is(query)
        if query.checkpoint:
            checkpoint, copies = self._launcher.checkpoint(query), self._settings.job.local_copy_dir
            retire_leftovers(checkpoint, self._settings.brokers, copies)
            discard(
                checkpoint,
                self._settings.brokers,
                copies,
                outlived=query.lease_ms == 0 or bool(view_to_succeed(query)),
            )
        if not self._running:
            give_memory_back(self._session)
        return True

    def speaks_for(self, query: Query) -> bool:
        """There is one runner."""
        return True

    def _report(self, query: Query, actual: Actual, error: str | None = None) -> None:
        self._catalog.report(query.id, now_ms=now_ms(), actual=actual, error=error)


def counted(progress: Mapping[str, Any]) -> Progress:
    """What a query has counted in its former lives, and how it was, as reported."""
    return Progress(
        counts=Counter(progress.get("counts", {})),
        late=Counter(progress.get("late", {})),
        state={place: (rows, size) for place, (rows, size) in progress.get("state", {}).items()},
        watermarks=dict(progress.get("watermarks", {})),
        held_by=dict(progress.get("held_by", {})),
        activity=Activity.read(progress.get("activity", {})),
    )


def _tens(seconds: float) -> int:
    """As far as it is worth a report."""
    return int(seconds) // 10 * 10


def _added(before: Counter[str], now: Counter[str]) -> dict[str, int]:
    return {name: before[name] + now[name] for name in {**before, **now}}


def run(settings: RunnerSettings, scratch: Path, stopped: threading.Event) -> None:
    """Look at the catalog until ``stopped``. Raises EnvironmentFault when Spark has gone: a new process finds another.

    There is one runner to a catalog, and one catalog to a place of checkpoints; StackError for a second. Raises
    StorageRefused, ServiceUnavailable where an object store cannot be used.
    """
    listener = listening(settings.bind, settings.port, "DOVETAIL_RUNNER_BIND")
    # A JVM of this machine takes as long to start as the broker beside it.
    session = _session(settings, scratch) if is_local(settings.spark_master) else None
    await_broker(settings.brokers, settings.broker_timeout_s, "the Spark runner")
    catalog = Catalog.open(settings.catalog_url, python_functions=settings.python_functions)
    lease = SoleHolder(catalog, Engine.SPARK.value, "the Spark runner of this catalog", lost=_end_at_once)
    try:
        _take_checkpoints(settings, catalog)
    except DovetailError:
        lease.release()
        raise
    _await_master(settings.spark_master, catalog, stopped)
    session = session or _session(settings, scratch)
    runner = Runner(settings, session, catalog)
    figures = QueriesFigures(catalog, settings.brokers)
    checked = own_requests_only(settings.hosts, "DOVETAIL_RUNNER_HOSTS")
    server = HealthServer(runner.healthy, runner.ready, figures, listener, checked)
    if settings.ready_file is not None:
        settings.ready_file.write_text(str(os.getpid()))
    try:
        _take_up(runner, session, catalog, stopped, f"brokers {settings.brokers}, {server.address}")
    except EnvironmentFault as gone:
        runner.abandon(gone)
        lease.release()
        raise
    runner.stop()
    server.close()
    session.stop()
    ends_watch(settings.brokers).close()
    lease.release()
    catalog.close()
    _LOG.info("stopped")


def _session(settings: RunnerSettings, scratch: Path) -> SparkSession:
    return start_session(
        "dovetail",
        sorted(jar for folder in settings.jars for jar in folder.glob("*.jar")),
        settings.spark_master,
        settings.driver_memory,
        conf=settings.spark_conf,
        scratch=scratch,
    )


def _take_up(runner: Runner, session: SparkSession, catalog: Catalog, stopped: threading.Event, where: str) -> None:
    """Look after the queries until ``stopped``."""
    _await_executors(runner, catalog, stopped)
    # Whoever has waited for the runner has a statement to write yet.
    try:
        if not stopped.is_set():
            warm_up(session)
    except (PySparkException, Py4JError) as failure:
        raise of_session(failure) from failure
    _LOG.info("taking up queries, %s", where)
    taken_up_s = time.monotonic()
    warm = False
    wanted = WantedWatch(catalog)
    while not wanted.wait(stopped, runner.pause_s):
        runner.look_for_session()
        try:
            runner.look()
        except ServiceUnavailable as failure:
            _LOG.warning("the catalog is out of reach, looking again\n%s", failure)
        if not warm and time.monotonic() - taken_up_s > _IDLE_S:
            warm = True
            runner.warm_up()


def _take_checkpoints(settings: RunnerSettings, catalog: Catalog) -> None:
    """The place may be named by runners that know nothing of each other: a volume that two stacks share."""
    expect_usable(settings.checkpoints)
    claim(settings.checkpoints, catalog.identity(uuid.uuid4().hex))


def _await_master(master: str, catalog: Catalog, stopped: threading.Event) -> None:
    """Spark would ask for a minute, and then end the process. Where no executors are needed, there is no master."""
    said = ""
    while not stopped.is_set() and master_answers(master) is False:
        said = said or _say_of_all(catalog, str(master_away(master)))
        stopped.wait(_LOOK_S)


def _await_executors(runner: Runner, catalog: Catalog, stopped: threading.Event) -> None:
    """Until there is one, whatever is asked of Spark waits."""
    said = ""
    while not stopped.is_set() and runner.executors is not None and not runner.executors.present:
        runner.look_for_session()
        trouble = runner.executors.trouble
        if trouble != said:
            said = _say_of_all(catalog, trouble)
        runner.looked_s = time.monotonic()
        stopped.wait(_LOOK_S)


def _say_of_all(catalog: Catalog, trouble: str) -> str:
    """Why no query can run, of all that are to; what was said."""
    if trouble:
        _LOG.warning("no query can run\n%s", trouble)
        with suppress(ServiceUnavailable):
            for query in catalog.queries():
                wanted = query.engine == Engine.SPARK and query.desired is Desired.RUNNING
                if wanted and query.actual is not Actual.FAILED:
                    catalog.report(query.id, now_ms=now_ms(), actual=Actual.RECOVERING, error=trouble, next_try_ms=0)
    return trouble


def _end_at_once(why: str) -> None:
    """Another runner has the catalog, or may have it: what this one held is that one's. Its open transactions are
    fenced.
    """
    _LOG.error("this runner ends: its lease of the catalog is over: %s", why)
    logging.shutdown()
    os._exit(1)
