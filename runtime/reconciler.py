"""Brings what runs nearer to what the catalog says is wanted, a look at a time.

The runner and the lookup workers do the same with the queries of their engine: start those that are to run, watch them,
try again what the environment has ended, end what is paused, clean up after what is dropped. What differs between them
is a ``QueryDriver``.

Each query is a task of its own: one that is slow to start, or cannot even be looked at, holds up no other.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from dovetail.changelog.errors import DovetailError, ServiceUnavailable
from dovetail.changelog.work.backoff import Backoff
from dovetail.runtime.clock import now_ms
from dovetail.runtime.faults import error_of
from dovetail.runtime.leases import Leases
from dovetail.runtime.logs.query_logs import QueryLog
from dovetail.runtime.retry_state import Failure, RetryState
from dovetail.sql.catalog import Actual, Catalog, Desired, Query
from dovetail.sql.catalog.records import RUNNER_GONE
from dovetail.sql.engines import Engine

_LIVELY_S = 5.0


@dataclass(frozen=True)
class Watched:
    """What a look at a running query has shown: that it does its work, what it waits for, that it has ended by itself;
    or nothing yet.
    """

    healthy: bool = False
    waits: str = ""
    failure: Failure | None = None


class QueryDriver(Protocol):
    """How an engine runs queries. A call about one query may take its time; those about others come from elsewhere."""

    def holds(self, query: Query) -> bool:
        """Whether it was started here, and has not been ended since."""
        ...

    def start(self, query: Query) -> Failure | None: ...

    def watch(self, query: Query) -> Watched:
        """Of a query that it holds, and no longer does after a failure."""
        ...

    def end(self, query: Query) -> bool:
        """Begin to end it, or see how far that is; whether it does not run here any more."""
        ...

    def discard(self, query: Query) -> bool:
        """Remove what is kept of an ended query; whether nobody else keeps anything, so that it can be forgotten."""
        ...

    def speaks_for(self, query: Query) -> bool:
        """Whether nobody else runs it, so that its state is said from here."""
        ...


class Reconciler:
    """The queries of one engine. ``look`` is to be called again and again.

    tasks  where the queries are seen to; without it one after the other, for drivers that never wait
    """

    def __init__(
        self,
        catalog: Catalog,
        engine: Engine,
        driver: QueryDriver,
        backoff: Backoff,
        log: logging.Logger,
        clock: Callable[[], float] = time.monotonic,
        tasks: Executor | None = None,
        leases: Leases | None = None,
    ) -> None:
        self._catalog = catalog
        self._engine = engine
        self._driver = driver
        self._troubles = RetryState(backoff)
        self._ending = RetryState(backoff)
        self._log = log
        self._clock = clock
        self._tasks = tasks
        self._leases = leases
        self._under_way: dict[int, Future[None]] = {}
        self._states: list[tuple[int, Desired, Actual]] = []
        self._changed_s = clock()

    def _log_of(self, query: Query) -> QueryLog:
        return QueryLog(self._log, query.name, lambda: query.progress.get("batch"))

    def look(self) -> list[Query]:
        """One look at the catalog; the queries that it holds of this engine, the dropped ones among them."""
        queries = [query for query in self._catalog.queries(dropped=True) if query.engine == self._engine]
        self._note_states([(query.id, query.desired, query.actual) for query in queries])
        self._under_way = {query_id: task for query_id, task in self._under_way.items() if not task.done()}
        for query in queries:
            if query.id in self._under_way:
                continue
            if self._tasks is None:
                self._see_to(query)
            else:
                self._under_way[query.id] = self._tasks.submit(self._see_to, query)
        return queries

    @property
    def busy(self) -> frozenset[int]:
        """The queries that a task is seeing to."""
        return frozenset(query_id for query_id, task in self._under_way.items() if not task.done())

    @property
    def calm(self) -> bool:
        """Whether no query has come, gone or changed its state in the last seconds: the next look may wait a little."""
        return self._clock() - self._changed_s > _LIVELY_S

    def _note_states(self, states: list[tuple[int, Desired, Actual]]) -> None:
        if states != self._states:
            self._states, self._changed_s = states, self._clock()

    def _see_to(self, query: Query) -> None:
        """Whatever is wrong with one query, the others go on."""
        try:
            match self._leases.desired(query) if self._leases is not None else query.desired:
                case Desired.RUNNING:
                    self._run(query)
                case Desired.PAUSED:
                    self._end_to(query, self._pause)
                case Desired.DROPPED:
                    self._end_to(query, self._drop)
        except Exception as failure:  # noqa: BLE001 - as it says
            self._on_reconcile_error(query, error_of(failure, f'query "{query.name}"'))

    def _on_reconcile_error(self, query: Query, error: DovetailError) -> None:
        """The look itself has failed: the catalog may be what is away, and the query well."""
        self._log_of(query).warning("it cannot be looked at\n%s", error, exc_info=not error.retry)
        if query.desired is Desired.RUNNING and not (error.retry and self._driver.holds(query)):
            with suppress(ServiceUnavailable):
                self._driver.end(query)
                self._set_back(query, Failure.of(error))

    def _run(self, query: Query) -> None:
        if self._driver.holds(query):
            self._watch(query)
        elif query.actual is Actual.FAILED:
            self._troubles.end(query.id)
        elif self._troubles.may_try(query.id, self._clock()):
            self._log_of(query).info("starting")
            self._note_restart(query)
            failure = self._driver.start(query)
            if failure is not None:
                self._set_back(query, failure)

    def _note_restart(self, query: Query) -> None:
        """One that was at work, and nobody has ended: its runner was killed, or its environment has ended it."""
        if query.actual in (Actual.RUNNING, Actual.RECOVERING) and self._driver.speaks_for(query):
            error = query.error or RUNNER_GONE
            restarts = query.restarts + 1
            self._catalog.report(
                query.id, now_ms=now_ms(), actual=Actual.RECOVERING, error=error, restarts=restarts, next_try_ms=0
            )

    def _watch(self, query: Query) -> None:
        watched = self._driver.watch(query)
        if watched.failure is not None:
            self._set_back(query, watched.failure)
        elif watched.waits and query.actual is not Actual.PENDING:
            if query.actual is not Actual.RECOVERING and self._driver.speaks_for(query):
                self._report(query, Actual.RECOVERING, watched.waits)
                self._log_of(query).warning("waiting\n%s", watched.waits)
        elif watched.healthy:
            self._troubles.end(query.id)
            if query.actual is not Actual.RUNNING:
                self._report(query, Actual.RUNNING, "")
                self._log_of(query).info("running")

    def _set_back(self, query: Query, failure: Failure) -> None:
        """What the environment ended is tried again forever; what does not pass ends the query."""
        if failure.final:
            self._troubles.end(query.id)
            self._report(query, Actual.FAILED, failure.message)
            self._log_of(query).error("failed\n%s", failure.message)
            return
        trouble = self._troubles.note(query.id, self._clock())
        if self._driver.speaks_for(query):
            next_try_ms = now_ms() + int(trouble.pause_s * 1000)
            self._report(query, Actual.RECOVERING, failure.message, next_try_ms)
        self._log_of(query).warning("tried again in %g s\n%s", trouble.pause_s, failure.message)

    def _end_to(self, query: Query, then: Callable[[Query], None]) -> None:
        """End it, and do what is left. What stands in the way of that is tried again with the same pauses."""
        self._troubles.end(query.id)
        if not self._ending.may_try(query.id, self._clock()):
            return
        try:
            if self._driver.end(query):
                then(query)
        except Exception:
            self._ending.note(query.id, self._clock())
            raise
        self._ending.end(query.id)

    def _pause(self, query: Query) -> None:
        if query.actual is not Actual.PAUSED and self._driver.speaks_for(query):
            self._report(query, Actual.PAUSED, "")

    def _drop(self, query: Query) -> None:
        if self._driver.discard(query):
            if self._leases is not None and not self._leases.cleared(query):
                return
            self._catalog.forget_query(query.id)
            if query.lease_ms:
                # Nothing is kept of a query of a session, not its log either: a line there would begin it anew.
                self._log.info('query "%s": dropped', query.name)
            else:
                self._log_of(query).info("dropped")

    def _report(self, query: Query, actual: Actual, error: str, next_try_ms: int = 0) -> None:
        self._catalog.report(query.id, now_ms=now_ms(), actual=actual, error=error, next_try_ms=next_try_ms)
