"""The worker: a child process for every running lookup query of the catalog.

Several workers share the queries: their children are members of one consumer group, over which the partitions of the
input spread. What is said of a query as a whole, that it is paused or gone, is said by the worker that ends last.
"""

from __future__ import annotations

import fcntl
import logging
import shutil
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from dovetail.broker import clients, topics
from dovetail.broker.names import memo_topic
from dovetail.broker.query_origin import QueryOrigin
from dovetail.changelog.errors import ServiceUnavailable
from dovetail.changelog.work.backoff import Backoff
from dovetail.runtime.clock import now_ms
from dovetail.runtime.leases import Leases
from dovetail.runtime.logs.query_logs import QueryLog
from dovetail.runtime.processes.own_fork_server import ForkServer
from dovetail.runtime.reconciler import Reconciler, Watched
from dovetail.runtime.retry_state import Failure
from dovetail.services.commands.command_codec import Command, Outcome
from dovetail.services.live_workers import live_workers
from dovetail.services.worker.query.child import FAILED, WAITS
from dovetail.services.worker.query.worker_lease import WorkerLease
from dovetail.services.worker.query.worker_settings import WorkerSettings
from dovetail.services.worker.supervisor.child_process import Child
from dovetail.sql.catalog import Actual, Catalog, Query, Worker
from dovetail.sql.engines import Engine
from dovetail.sql.syntax.redact import redacted

_LOG = logging.getLogger("dovetail.worker")
_SEEN_EVERY_S = 2.0
_PAUSES = Backoff(first_s=0.5, longest_s=15.0)


class WorkerSupervisor:
    """``look`` brings what runs nearer to what is wanted; to be called again and again. A ``QueryDriver``."""

    def __init__(
        self,
        worker: Worker,
        settings: WorkerSettings,
        stop_timeout_s: float,
        catalog: Catalog,
        environment: Mapping[str, str],
        fork_server: ForkServer,
    ) -> None:
        self._worker = worker
        self._settings = settings
        self._stop_timeout_s = stop_timeout_s
        self._catalog = catalog
        self._environment = environment
        self._fork_server = fork_server
        self._children: dict[int, Child] = {}
        self._seen_s = 0.0
        leases = Leases(catalog, settings.brokers, settings.query_logs)
        self._reconciler = Reconciler(catalog, Engine.FAUST, self, _PAUSES, _LOG, leases=leases)
        self.files, self._slot = claimed_folder(settings.data_dir / "worker")
        self._lease = WorkerLease(self.files)

    # -- the queries

    def look(self) -> None:
        """One look at the catalog."""
        queries = self._reconciler.look()
        for query_id in self._children.keys() - {query.id for query in queries}:
            self._ended(query_id)
        self._be_seen()

    def holds(self, query: Query) -> bool:
        return query.id in self._children

    def start(self, query: Query) -> Failure | None:
        self._children[query.id] = Child(query.name, self._worker.id, self.files, self._environment, self._fork_server)
        self._be_seen(now=True)
        return None

    def watch(self, query: Query) -> Watched:
        """A query says itself that it runs, or has failed. One that ends otherwise is tried again."""
        child = self._children[query.id]
        if query.actual is Actual.FAILED:
            self._ended(query.id)
            return Watched()
        code = child.ended()
        if code is None:
            # Its partitions are given away after the same time, where there is anybody to take them.
            child.kill_if_silent(self._settings.app.session_timeout_s)
            return Watched(healthy=query.actual is Actual.RUNNING)
        del self._children[query.id]
        return Watched(failure=_failure(child, code))

    def end(self, query: Query) -> bool:
        return self._ended(query.id)

    def discard(self, query: Query) -> bool:
        if query.checkpoint:
            shutil.rmtree(self.files / QueryOrigin.identity_in(query.checkpoint), ignore_errors=True)
        if self._runs_elsewhere(query):
            return False
        if query.checkpoint:
            self._forget(query)
        return True

    def speaks_for(self, query: Query) -> bool:
        return not self._runs_elsewhere(query)

    def _forget(self, query: Query) -> None:
        """What the broker holds of a dropped query, besides its output."""
        client = clients.admin(self._settings.brokers)
        topics.forget_group(client, QueryOrigin.identity_in(query.checkpoint))
        if not topics.delete(client, [memo_topic(query.name)]):
            QueryLog(_LOG, query.name).warning("the broker does not answer, and its memo is left")

    def _ended(self, query_id: int) -> bool:
        """End the child of a query, a look at a time; whether there is none any more."""
        child = self._children.get(query_id)
        if child is None:
            return True
        if not child.stop(self._stop_timeout_s):
            return False
        del self._children[query_id]
        self._be_seen(now=True)
        return True

    def _runs_elsewhere(self, query: Query) -> bool:
        """Whether another worker runs the query."""
        others = live_workers(self._catalog, now_ms())
        return any(query.name in other.queries for other in others if other.id != self._worker.id)

    def stop(self) -> None:
        """End all children; their queries go on elsewhere, or at the next start."""
        while any([not child.stop(self._stop_timeout_s) for child in self._children.values()]):  # noqa: C419 - all are asked
            time.sleep(0.02)
        ended, self._children = set(self._children), {}
        self._catalog.worker_gone(self._worker.id)
        for query in self._catalog.queries():
            if query.id in ended and query.actual is Actual.RUNNING and not self._runs_elsewhere(query):
                self._catalog.report(query.id, now_ms=now_ms(), actual=Actual.STOPPED)
        self._fork_server.close()
        self._lease.close()
        self._slot.close()

    # -- the worker itself

    def introduce(self, worker: Worker) -> None:
        """What is known of the worker now, its address among it."""
        self._worker = worker
        self._be_seen(now=True)

    def _be_seen(self, *, now: bool = False) -> None:
        if now or time.monotonic() - self._seen_s > _SEEN_EVERY_S:
            self._seen_s = time.monotonic()
            running = tuple(sorted(child.name for child in self.children))
            if not live_workers(self._catalog, now_ms()):
                self._catalog.note_runner_gone(Engine.FAUST)
            self._catalog.worker_seen(replace(self._worker, queries=running), now_ms())

    @property
    def children(self) -> list[Child]:
        return list(self._children.values())

    def execute(self, command: Command) -> Outcome:
        """What came of a command in all children."""
        return joined([child.execute(command) for child in self.children if child.ended() is None])


def _failure(child: Child, code: int) -> Failure | None:
    """None where the child has said in the catalog itself how the query is."""
    if code in (0, FAILED):
        return None
    last_words = redacted(child.last_words())
    if code == WAITS:
        return Failure(last_words)
    return Failure(f"{child.killed_for or f'the process of the query ended with code {code}'}\n{last_words}")


def joined(outcomes: Sequence[Outcome]) -> Outcome:
    """One for all: numbers added up, lists put together; not ok as soon as one is not."""
    failed = [outcome for outcome in outcomes if not outcome.ok]
    if failed:
        return failed[0]
    numbers: Counter[str] = Counter()
    lists: dict[str, list[Any]] = {}
    for outcome in outcomes:
        for name, value in outcome.detail.items():
            if isinstance(value, list):
                lists.setdefault(name, []).extend(value)
            else:
                numbers[name] += value
    return Outcome(True, {**numbers, **lists})


def claimed_folder(root: Path) -> tuple[Path, TextIOWrapper]:
    """A folder that no other worker on this machine uses, the same one again after a restart, and its lock."""
    for number in range(1, 1000):
        folder = root / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
        else:
            return folder, lock
    raise ServiceUnavailable("a thousand workers use this folder", where=str(root), fix="set DOVETAIL_DATA_DIR")


def discard_orphans(folder: Path, catalog: Catalog) -> None:
    """Remove what is kept of queries that were dropped while no worker used the folder."""
    known = {QueryOrigin.identity_in(query.checkpoint) for query in _lookups(catalog) if query.checkpoint}
    for kept in folder.iterdir():
        if kept.is_dir() and kept.name not in known:
            shutil.rmtree(kept, ignore_errors=True)


def _lookups(catalog: Catalog) -> list[Query]:
    return [query for query in catalog.queries(dropped=True) if query.engine == Engine.FAUST]
