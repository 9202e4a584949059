"""The lowest layer: the source, asked in chunks, again if it fails, within a budget."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock

from dovetail.changelog.errors import DovetailError, RecordRejected
from dovetail.changelog.lookup import Key, Rows
from dovetail.changelog.work.backoff import Backoff
from dovetail.dictionaries.cache.breaker import Breaker
from dovetail.dictionaries.cache.cache_settings import CacheSettings
from dovetail.dictionaries.cache.flights.flight import Flight, Unanswered, all_unanswered
from dovetail.dictionaries.cache.layout_statistics import Statistics
from dovetail.dictionaries.contracts import KEYS_PER_STATEMENT, Source
from dovetail.dictionaries.definition.definition import Definition

_PAUSES = Backoff(first_s=0.02, longest_s=1.0)

Arrived = Callable[[Sequence[Key], dict[Key, Rows]], None]
"""What is done with the answer of one statement, on any thread: the keys asked, the rows found."""


class Fetcher:
    """The source of a dictionary, asked by primary key. Thread-safe.

    A failing statement is repeated with growing pauses until ``timeout_ms`` have passed. Then the source is left
    alone for a second, so that the next batches do not each spend the budget again.
    """

    def __init__(
        self,
        definition: Definition,
        source: Source,
        settings: CacheSettings,
        statistics: Statistics,
        elapsed_s: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._by = definition.key
        self._source = source
        self._settings = settings
        self._statistics = statistics
        self._elapsed_s = elapsed_s
        self._sleep = sleep
        self._breaker = Breaker(elapsed_s, failures=1, least_s=1.0, greatest_s=1.0)
        self._last_error: DovetailError | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._pool_lock = Lock()

    def fetch(self, keys: Sequence[Key], arrived: Arrived, now_ms: int) -> Unanswered | None:
        """Asks for distinct keys; ``arrived`` is called for each statement, on any thread. The keys not answered."""
        chunks = even_parts(keys, KEYS_PER_STATEMENT)
        deadline_s = self._elapsed_s() + self._settings.timeout_ms / 1000

        def ask(chunk: Sequence[Key]) -> Unanswered | None:
            try:
                rows = self._ask(chunk, deadline_s, now_ms)
            except RecordRejected as error:
                # A row that cannot be used takes its own key with it, and not those asked for beside it.
                if len(chunk) == 1:
                    return Unanswered(chunk, error)
                middle = len(chunk) // 2
                halves = ask(chunk[:middle]), ask(chunk[middle:])
                return all_unanswered([half for half in halves if half is not None])
            except DovetailError as error:
                return Unanswered(chunk, error)
            arrived(chunk, rows)
            return None

        return all_unanswered([failure for failure in self._each(ask, chunks) if failure is not None])

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown()
        self._source.close()

    def _each(
        self, ask: Callable[[Sequence[Key]], Unanswered | None], chunks: Sequence[Sequence[Key]]
    ) -> Iterable[Unanswered | None]:
        if len(chunks) == 1 or self._settings.threads < 2:
            return map(ask, chunks)
        with self._pool_lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._settings.threads, thread_name_prefix="dictionary-source")
        return self._pool.map(ask, chunks)

    def _ask(self, chunk: Sequence[Key], deadline_s: float, now_ms: int) -> dict[Key, Rows]:
        pauses = _PAUSES.pauses()
        while True:
            if self._last_error is not None and not self._breaker.allows():
                raise self._last_error.with_traceback(None)
            started_s = self._elapsed_s()
            try:
                self._statistics.count(source_statements=1, source_keys=len(chunk))
                rows = self._source.fetch(self._by, chunk)
            except DovetailError as error:
                self._statistics.count(source_errors=1)
                self._statistics.failed(error)
                pause_s = next(pauses)
                if not error.retry or self._elapsed_s() + pause_s >= deadline_s:
                    self._give_up(error)
                    raise
            else:
                self._last_error = None
                self._breaker.succeeded()
                self._statistics.loaded(now_ms, self._elapsed_s() - started_s)
                return rows
            self._sleep(pause_s * random.uniform(0.5, 1.0))

    def _give_up(self, error: DovetailError) -> None:
        if error.retry:
            self._last_error = error
            self._breaker.failed()


class SourceLayer:
    """Asks the source for all keys. ``keep`` is told what each statement found, before the flight has it."""

    def __init__(self, fetcher: Fetcher, keep: Arrived = lambda keys, found: None) -> None:
        self._fetcher = fetcher
        self._keep = keep

    def answer(self, flight: Flight, keys: Sequence[Key]) -> Unanswered | None:
        return self.ask(flight, keys, self._keep)

    def ask(self, flight: Flight, keys: Sequence[Key], keep: Arrived) -> Unanswered | None:
        """As ``answer``, with a ``keep`` for this time."""

        def arrived(chunk: Sequence[Key], found: dict[Key, Rows]) -> None:
            keep(chunk, found)
            flight.answer(dict.fromkeys(chunk, ()) | found)

        return self._fetcher.fetch(keys, arrived, flight.now_ms)


def even_parts(keys: Sequence[Key], most: int) -> list[Sequence[Key]]:
    """``keys`` in as few parts as have at most ``most`` of them each, none much smaller than the others."""
    size = -(-len(keys) // -(-len(keys) // most)) if keys else most
    return [keys[at : at + size] for at in range(0, len(keys), size)]
