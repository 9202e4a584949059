"""The process of one lookup query: ``python -m dovetail.services.worker.query.child NAME --listen DESCRIPTOR``

A worker starts it, and its end code tells the worker what to do: ``FAILED`` is final and in the catalog already,
``WAITS`` means that a service is away. It ends by itself when its worker is gone.
"""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import fcntl
import gc
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from aiohttp import web

from dovetail.broker import clients, topics
from dovetail.broker import group_member as group
from dovetail.broker.names import memo_topic
from dovetail.broker.presence import BrokerWatch
from dovetail.broker.query_origin import refuse_other_topics
from dovetail.broker.reader import read_topic
from dovetail.broker.topic_shapes import TopicAdmin, TopicShape, config_for
from dovetail.broker.topics import PartitionOffsets
from dovetail.broker.transactional_writer import WriteTarget
from dovetail.changelog.dead_letter import topic_of
from dovetail.changelog.errors import DovetailError, InternalError, RecordsGone, ServiceUnavailable
from dovetail.changelog.schema import Kind
from dovetail.enrichment.enricher import ROWS_IN, ROWS_OUT
from dovetail.joins.dataflow.ports import Ingest
from dovetail.runtime.clock import now_ms
from dovetail.runtime.faults import error_of
from dovetail.runtime.health_server import metrics_page
from dovetail.runtime.logs.process_log import configure_logs
from dovetail.runtime.logs.query_logs import BatchTotals, QueryLog, keep_query_logs
from dovetail.runtime.processes.engine_bounds import bounded_engine
from dovetail.runtime.query_plan import plan_of
from dovetail.runtime.settings import Settings, read_settings
from dovetail.services.commands.command_codec import command_of, outcome_bytes
from dovetail.services.live_workers import live_workers
from dovetail.services.worker.lane.lane import Lane
from dovetail.services.worker.lane.lane_settings import LaneTopics
from dovetail.services.worker.lane.lanes import Lanes
from dovetail.services.worker.lane.partition_answerer import QueryAnswers
from dovetail.services.worker.lane.transactions import Place
from dovetail.services.worker.query import worker_lease
from dovetail.services.worker.query.app import lookup_app
from dovetail.services.worker.query.cache_occupancy import CacheOccupancy
from dovetail.services.worker.query.claimed_origin import claimed_origin
from dovetail.services.worker.query.dictionary_commands import DictionaryCommands
from dovetail.services.worker.query.metrics import QueryFigures
from dovetail.services.worker.query.progress import Report, merged, waits_for
from dovetail.services.worker.query.pulse import Pulse
from dovetail.services.worker.query.standstill import Standstill
from dovetail.services.worker.query.worker_settings import WorkerSettings
from dovetail.services.worker.tables.lookup_tables import Tables
from dovetail.sql.catalog import WORKED_MS, WORKED_ROWS, Actual, Catalog, Query
from dovetail.sql.planner import stream_of
from dovetail.sql.syntax.redact import redacted

_LOG = logging.getLogger("dovetail.worker")
_LOOK_S = 0.2
_WATCH_S = 5.0
_SWITCH_S = 0.0005
_LONGEST_END_S = 15.0
_MORE_OBJECTS = 1_000_000
"""Than there were before: a batch does not make so many."""
_STANDSTILL_S = 30.0
_LET_GO_SESSIONS = 4
"""Silence of so many sessions' length: after one the group has noticed, and its next round is begun."""
_GONE_FOR_GOOD_MS = 3_600_000
_FEW_WORKERS = 32
FAILED = 3
WAITS = 4


class LookupQuery:
    """One query, from its plan to its end. ``files`` is the folder of the worker."""

    def __init__(self, name: str, worker: str, files: Path, settings: WorkerSettings) -> None:
        self._settings = settings
        self._worker = worker
        self._files = files
        self._failure: BaseException | None = None
        self._ended = threading.Event()
        self._orphaned = False
        self.catalog = Catalog.open(settings.catalog_url, python_functions=settings.python_functions)
        self.query = self.catalog.query(name)
        self._restarts = self.query.restarts
        self._said: Counter[str] = Counter()
        self._counted_s, self._worked_s = time.monotonic(), 0.0
        self.lanes = Lanes(self._lane)
        self._batch_totals = BatchTotals(QueryLog(_LOG, name, self.lanes.commits))
        self._broker = BrokerWatch(settings.brokers)
        self._admin = clients.admin(settings.brokers)
        self._next_watch_s = 0.0
        self._missing = ""
        """Why one of its topics cannot be asked for; '' while all can."""
        self._standstill = Standstill(
            self._ends,
            patience_s=max(settings.broker_wait_s, settings.lane.wait_s) + _STANDSTILL_S,
            let_go_s=_LET_GO_SESSIONS * settings.app.session_timeout_s,
        )

    def open(self) -> None:
        """Plan, resolve where it starts, make its topics, open what it looks up."""
        settings, name = self._settings, self.query.name
        fragment = plan_of(self.query, self.catalog).fragment(name)
        self.flow = fragment.lookup_flow
        client = self._admin
        static = {table: stream_of(self.catalog, table) for table in self.flow.snapshots}
        partitions = topics.partitions(client, self.flow.scan.topic)
        if self._remembers and not self.query.checkpoint:
            # Only now: a memo that has gone later has taken with it what is to be taken back.
            TopicAdmin(settings.brokers, settings.broker_timeout_s).create(
                memo_topic(name), memo_shape(len(partitions))
            )
        self.origin = claimed_origin(
            self.query,
            fragment,
            self.catalog,
            client,
            {table: stream.topic for table, stream in static.items()},
            memo_topic(name) if self._remembers else "",
        )
        if self.query.progress.get("counts", {}).get(ROWS_IN):
            topics.expect_output(client, self.query.topic)
        topics.ensure(client, {self.query.topic: settings.output_partitions, topic_of(name): 1})
        if self._remembers:
            topics.widen(client, memo_topic(name), len(partitions))
        self._topics = LaneTopics(self.query.topic, topic_of(name), memo_topic(name) if self._remembers else "")
        written = filter(None, (self._topics.output, self._topics.memo))
        largest = min(topics.message_bytes(client, topic) for topic in written)
        folder = self._folder()
        self.tables = Tables(self.catalog, settings.brokers, settings.redis_url, settings.outside, folder)
        self._occupancy = CacheOccupancy(self.tables.layouts, folder, time.monotonic)
        self._answers = QueryAnswers(
            flow=self.flow,
            lookups=self.tables.open(self.flow.accesses),
            snapshots={table: self._snapshot(table) for table in static},
            catch_up=self.tables.catch_up,
            brokers=settings.brokers,
            query=name,
            identity=self.origin.identity,
            folder=folder,
            memo_ttl_s=settings.memo_ttl_s,
            largest_bytes=largest,
        )
        self._target = WriteTarget(
            settings.brokers,
            self.origin.identity,
            "",
            settings.transaction_timeout_s,
            settings.broker_wait_s,
            largest,
            topics.message_bytes(client, topic_of(name)),
        )

    @property
    def _starts(self) -> PartitionOffsets:
        [first_offsets] = self.origin.first_offsets
        return first_offsets

    @property
    def _remembers(self) -> bool:
        return self.flow.ingest is not Ingest.APPEND

    def _folder(self) -> Path:
        """What the worker keeps of the query, for this process alone: its predecessor may be about to end."""
        folder = self._files / self.origin.identity
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = (folder / "lock").open("w")
        deadline = time.monotonic() + self._settings.broker_timeout_s
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return folder
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise ServiceUnavailable(
                        f'another process of this worker runs the query "{self.query.name}"', where=str(folder)
                    ) from None
                time.sleep(_LOOK_S)

    def _snapshot(self, table: str) -> pa.Table:
        stream = stream_of(self.catalog, table)
        return read_topic(self._settings.brokers, stream.schema, stream.topic, self.origin.snapshots[table]).rows

    def _lane(self, partition: int, member: group.GroupMember) -> Lane:
        place = Place(self._target, self.flow.scan.topic, partition, self._starts.get(partition, 0))
        answerer = self._answers.for_partition(partition)
        return Lane(place, member, self._topics, self.query.name, answerer, self._settings.lane, self.fail)

    def fail(self, failure: BaseException) -> None:
        """End the query, from any thread."""
        self._failure = self._failure or failure
        self._ended.set()

    # -- running

    async def run(self, stopped: asyncio.Event, listener: socket.socket) -> int:
        """Until it is told to stop, or fails; the end code of the process."""
        app = lookup_app(
            self.origin.identity,
            self._settings.brokers,
            self.flow.scan.topic,
            self.lanes,
            self._files / self.origin.identity / "faust",
            self._settings.app,
        )
        server = await self._serve(listener)
        await app.start()
        self._broker.start()
        parent = os.getppid()
        while not (stopped.is_set() or self._ended.is_set() or app.should_stop or os.getppid() != parent):
            if worker_lease.is_over(self._files):
                _LOG.warning('query "%s": its worker stands still, and would not hear of commands', self.query.name)
                self._orphaned = True
                break
            await asyncio.to_thread(self._look)
            with suppress(TimeoutError):
                await asyncio.wait_for(stopped.wait(), _LOOK_S)
        _end_within(_LONGEST_END_S)
        await asyncio.to_thread(self.lanes.end)
        await asyncio.to_thread(self._report)
        crashed = app.crash_reason if app.should_stop and not stopped.is_set() else None
        await app.stop()
        await server.cleanup()
        await asyncio.to_thread(self.tables.close)
        return self._end_code(self._failure or crashed)

    def _look(self) -> None:
        """Report; and every few seconds ask the broker whether anything is wrong that nothing else tells."""
        self._report()
        now_s = time.monotonic()
        if now_s < self._next_watch_s:
            return
        self._next_watch_s = now_s + _WATCH_S
        self._look_for_standstill()
        self._look_at_topics()

    def _look_at_topics(self) -> None:
        """Its input, its memo and what it has read once are still the same. One that is gone is waited for: once it is
        there again, it is another one.
        """
        known = self.origin.topic_ids
        try:
            refuse_other_topics(known, topics.ids_again(self._admin, known), self.query.name)
        except RecordsGone as failure:
            self.fail(failure)
        except ServiceUnavailable as failure:
            self._missing = failure.what
        else:
            self._missing = ""

    def _report(self) -> None:
        """Progress, where the catalog does not have it yet; and that it runs, once the group has said what is its."""
        report = Report(
            self._worker,
            self.lanes.reached(),
            self._counts(),
            self.lanes.batch_ms(),
            self._occupancy.document(),
            redacted(self.lanes.waits_for()),
        )
        self._say_what_is_new(report)
        try:
            query = self.catalog.query(self.query.name)
            if query.id != self.query.id:
                return  # dropped, and made again
            self._restarts = query.restarts
            progress = merged(query.progress, self.flow.scan.topic, self._starts, report, self._known_workers(query))
            trouble = self._broker.trouble or self._missing or self._waits_for(progress)
            actual = None if query.actual is Actual.FAILED else self._turned(query, trouble)
            if progress != query.progress or actual is not None:
                self.catalog.report(
                    query.id,
                    now_ms=now_ms(),
                    actual=actual,
                    error=None if actual is None else trouble,
                    next_try_ms=None if actual is None else 0,
                    progress=progress,
                )
        except ServiceUnavailable as failure:
            _LOG.warning("the catalog is out of reach, reporting later\n%s", failure)
        except DovetailError:
            # Dropped: the worker is about to end this process.
            return

    def _counts(self) -> Counter[str]:
        """What was done since the start, and for how long: since the last look, where records were read since."""
        counts, now_s = self.lanes.counts(), time.monotonic()
        if counts[ROWS_IN] > self._said[ROWS_IN]:
            self._worked_s += max(now_s - self._counted_s, self.lanes.batch_ms() / 1000)
        self._counted_s = now_s
        return counts + Counter({WORKED_MS: round(self._worked_s * 1000), WORKED_ROWS: counts[ROWS_IN]})

    def _known_workers(self, query: Query) -> frozenset[str] | None:
        """Of many that have reported, those of which more may come; None: they are few."""
        if len(query.progress.get("by_worker", {})) <= _FEW_WORKERS:
            return None
        return frozenset([self._worker, *(one.id for one in self.catalog.workers(now_ms() - _GONE_FOR_GOOD_MS))])

    def _look_for_standstill(self) -> None:
        standstill = self._standstill.look(self.lanes.held(), self.lanes.let_go())
        if standstill:
            _LOG.error('query "%s": stands still: %s; what its threads do:', self.query.name, standstill)
            faulthandler.dump_traceback()
            self.fail(ServiceUnavailable(f"stood still: {standstill}", where=f'query "{self.query.name}"'))

    def _ends(self, partitions: Collection[int]) -> PartitionOffsets:
        topic = self.flow.scan.topic
        return topics.ends(self._admin, {topic: partitions})[topic]

    def _say_what_is_new(self, report: Report) -> None:
        new, self._said = Counter(report.counts) - self._said, Counter(report.counts)
        if new:
            self._batch_totals.note(new[ROWS_IN], new[ROWS_OUT], report.batch_ms, time.monotonic())

    def _waits_for(self, progress: Mapping[str, Any]) -> str:
        """Why it waits for a service, as this worker says, or another one that was seen a moment ago."""
        if not any(progress["waits_by_worker"].values()):
            return ""
        return waits_for(progress, {self._worker, *(one.id for one in live_workers(self.catalog, now_ms()))})

    def _turned(self, query: Query, trouble: str) -> Actual | None:
        """How the query is from now on, where the catalog does not have it yet. Until its partitions are here that is
        said by the worker; while nothing can be read, looked up or written, by whichever worker, it does not run.
        """
        if self._ended.is_set() or not self.lanes.opened:
            return None
        now = Actual.RECOVERING if trouble else Actual.RUNNING
        return None if query.actual is now and query.error == trouble else now

    def _end_code(self, failure: BaseException | None) -> int:
        if failure is None:
            return WAITS if self._orphaned else 0
        error = error_of(failure, f'query "{self.query.name}"')
        if isinstance(error, InternalError):
            _LOG.error('query "%s": a defect', self.query.name, exc_info=failure)
        return self.given_up(error)

    def given_up(self, error: DovetailError) -> int:
        """Say why it ends, and whether the worker is to start it again."""
        if error.retry:
            _LOG.warning('query "%s": ended by its environment\n%s', self.query.name, redacted(str(error)))
            return WAITS
        message = redacted(str(error))
        _LOG.error('query "%s": failed\n%s', self.query.name, message)
        self.catalog.report(self.query.id, now_ms=now_ms(), actual=Actual.FAILED, error=message)
        return FAILED

    # -- asked from outside

    async def _serve(self, listener: socket.socket) -> web.AppRunner:
        files = self._files / self.origin.identity
        figures = QueryFigures(self.query.name, self.lanes, self.tables, files, lambda: self._restarts)

        async def healthy(_request: web.Request) -> web.Response:
            return web.json_response({"query": self.query.name, "partitions": self.lanes.partitions})

        async def ready(request: web.Request) -> web.Response:
            return await healthy(request) if self.lanes.opened else web.json_response({"ready": False}, status=503)

        async def command(request: web.Request) -> web.Response:
            order = command_of(await request.read())
            if order is None:
                return web.Response(status=400)
            outcome = await asyncio.to_thread(
                DictionaryCommands(self.tables.layouts, self.tables.key_readers).execute, order
            )
            return web.Response(body=outcome_bytes(outcome), content_type="application/json")

        app = web.Application()
        app.router.add_get("/metrics", metrics_page(figures))
        app.router.add_get("/healthz", healthy)
        app.router.add_get("/readyz", ready)
        app.router.add_post("/commands", command)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.SockSite(runner, listener).start()
        return runner


def _end_within(seconds: float) -> None:
    """End the process whatever its clients still wait for. A worker would kill it, but an orphan has none."""

    def end() -> None:
        _LOG.warning("it did not end in order within %g s, and ends now; what its threads wait for:", seconds)
        logging.shutdown()
        faulthandler.dump_traceback()
        os._exit(WAITS)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()


def memo_shape(partitions: int) -> TopicShape:
    """Of the topic of the memo, which has as many partitions as the input."""
    return TopicShape(partitions, config=config_for(Kind.UPSERT))


def run(arguments: argparse.Namespace, settings: Settings) -> int:
    """The whole life of the process; its end code."""
    worker_settings = WorkerSettings.of(settings)
    listener = socket.socket(fileno=arguments.listen)
    pulse = Pulse(arguments.pulse)
    query = LookupQuery(arguments.name, arguments.worker, arguments.files, worker_settings)
    keep_query_logs(settings, arguments.name, query.lanes.commits)
    try:
        group.check(worker_settings.brokers)
        query.open()
    except (DovetailError, OSError) as failure:
        return query.given_up(error_of(failure, f'query "{arguments.name}"'))
    return asyncio.run(_run_until_signal(query, listener, pulse))


async def _run_until_signal(query: LookupQuery, listener: socket.socket, pulse: Pulse) -> int:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    beating = asyncio.create_task(pulse.of_loop())
    try:
        return await query.run(stopped, listener)
    finally:
        beating.cancel()


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m dovetail.services.worker.query.child")
    parser.add_argument("name", help="of the query")
    parser.add_argument("--worker", default=f"{socket.gethostname()}-{os.getpid()}", help="id of the worker")
    parser.add_argument("--files", type=Path, default=None, help="folder of the worker")
    parser.add_argument("--listen", type=int, required=True, help="descriptor of a listening socket")
    parser.add_argument("--pulse", type=int, default=None, help="descriptor of a pipe that takes the signs of life")
    arguments = parser.parse_args(given)
    settings = read_settings()
    configure_logs(settings.log_level, settings.log_format)
    arguments.files = arguments.files or settings.data_dir / "worker" / "alone"
    # Rows are many, and have no cycles: looking through those of a batch for some takes half as long as to answer it.
    gc.freeze()
    gc.set_threshold(_MORE_OBJECTS, 20, 20)
    # A thread that comes back from the network waits so long for one that computes, for each piece of an answer.
    sys.setswitchinterval(_SWITCH_S)
    try:
        with bounded_engine(settings, threads=os.cpu_count() or 1):
            return run(arguments, settings)
    except ServiceUnavailable as failure:
        print(failure, file=sys.stderr)
        return WAITS
    except DovetailError as failure:
        print(failure, file=sys.stderr)
        return 1


if __name__ == "__main__":
    # Threads of clients that wait for a broker that is gone must not hold the process.
    code = main()
    logging.shutdown()
    os._exit(code)
