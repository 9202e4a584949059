"""Brings what runs nearer to what the catalog says is wanted, a look at a time.

The runner and the lookup workers do the same with the queries of their engine: start those that are to run, watch them,
try again what a lost service has ended, end what is paused, clean up after what is dropped. What differs between them
is a ``QueryDriver``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from runtime.leases import Leases
from runtime.troubles import Patience, Setback, Troubles
from sql.catalog import Actual, Catalog, Desired, Query
from sql.fragments import Engine


@dataclass(frozen=True)
class Watched:
    """What a look at a running query has shown: that it is well again, that it has ended by itself, or neither."""

    recovered: bool = False
    setback: Setback | None = None


class QueryDriver(Protocol):
    """How an engine runs queries. No method waits for long: a look is at all of them."""

    def holds(self, query: Query) -> bool:
        """Whether it was started here, and has not been ended since."""
        ...

    def start(self, query: Query) -> Setback | None: ...

    def watch(self, query: Query) -> Watched:
        """Of a query that it holds, and no longer does after a setback."""
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
    """The queries of one engine. ``look`` is to be called again and again."""

    def __init__(
        self,
        catalog: Catalog,
        engine: Engine,
        driver: QueryDriver,
        patience: Patience,
        log: logging.Logger,
        clock: Callable[[], float] = time.monotonic,
        leases: Leases | None = None,
    ) -> None:
        self._catalog = catalog
        self._engine = engine
        self._driver = driver
        self._troubles = Troubles(patience)
        self._log = log
        self._clock = clock
        self._leases = leases

    def look(self) -> list[Query]:
        """One look at the catalog; the queries that it holds of this engine, the dropped ones among them."""
        queries = [query for query in self._catalog.queries(dropped=True) if query.engine == self._engine]
        for query in queries:
            match self._leases.desired(query) if self._leases is not None else query.desired:
                case Desired.RUNNING:
                    self._run(query)
                case Desired.PAUSED:
                    self._pause(query)
                case Desired.DROPPED:
                    self._drop(query)
        return queries

    def _run(self, query: Query) -> None:
        if self._driver.holds(query):
            watched = self._driver.watch(query)
            if watched.recovered:
                self._troubles.end(query.id)
            if watched.setback is not None:
                self._set_back(query, watched.setback)
        elif query.actual is Actual.FAILED:
            self._troubles.end(query.id)
        elif self._troubles.may_try(query.id, self._clock()):
            self._log.info('query "%s": starting', query.name)
            setback = self._driver.start(query)
            if setback is not None:
                self._set_back(query, setback)

    def _set_back(self, query: Query, setback: Setback) -> None:
        """A lost service is waited for, for a while; what does not pass ends the query."""
        trouble = self._troubles.note(query.id, setback, self._clock())
        if trouble is None:
            verdict = setback.verdict or setback.told
            self._report(query, Actual.FAILED, verdict)
            self._log.error('query "%s": failed\n%s', query.name, verdict)
            return
        if self._driver.speaks_for(query):
            self._report(query, Actual.PENDING, setback.told)
        self._log.warning(
            'query "%s": %s, next attempt in %g s\n%s', query.name, setback.what, trouble.pause_s, setback.told
        )

    def _pause(self, query: Query) -> None:
        self._troubles.end(query.id)
        if self._driver.end(query) and query.actual is not Actual.PAUSED and self._driver.speaks_for(query):
            self._report(query, Actual.PAUSED)

    def _drop(self, query: Query) -> None:
        self._troubles.end(query.id)
        if self._driver.end(query) and self._driver.discard(query):
            if self._leases is not None and not self._leases.cleared(query):
                return
            self._catalog.forget_query(query.id)
            self._log.info('query "%s": dropped', query.name)

    def _report(self, query: Query, actual: Actual, error: str | None = None) -> None:
        self._catalog.report(query.id, now_ms=time.time_ns() // 1_000_000, actual=actual, error=error)
