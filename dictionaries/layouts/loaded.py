"""HASHED, FLAT, SPARSE_HASHED, HASHED_ARRAY: all rows in the memory of the process, loaded again from time to time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from typing import Any, Protocol, runtime_checkable

from dovetail.changelog.errors import DovetailError, SourceRefused
from dovetail.changelog.lookup import Key, LookupRejected, Row, Rows
from dovetail.dictionaries.cache.cache_settings import OnError, read_settings
from dovetail.dictionaries.cache.filling.fetcher import even_parts
from dovetail.dictionaries.cache.invalidation import SeenRefreshes
from dovetail.dictionaries.cache.key_text import key_text
from dovetail.dictionaries.cache.layout_statistics import Statistics, Status
from dovetail.dictionaries.contracts import KEYS_PER_STATEMENT, Source
from dovetail.dictionaries.definition.definition import Definition
from dovetail.dictionaries.feed.source_changes import SourceChanges
from dovetail.dictionaries.layouts.reloader import Reloader
from dovetail.dictionaries.wall_clock import wall_clock_ms

_SAMPLED_ROWS = 1_000


@runtime_checkable
class Incremental(Protocol):
    """A source that can give the rows that were written since a moment (UPDATE_FIELD)."""

    def load_since(self, since_ms: int) -> Iterable[list[Row]]:
        """The rows whose update field is not before the moment, less UPDATE_LAG."""
        ...


class Loaded:
    """The rows by key, whole: a lookup never asks the source. The first one waits for the first load.

    A reload builds the next dict beside the one that answers, and takes its place in one assignment; if it fails, the
    old one goes on answering. It happens at a random time within LIFETIME(MIN .. MAX ..) after the last one. With
    UPDATE_FIELD a reload asks for the rows written since the last load began (a deleted row stays until a whole load,
    which ``invalidate()`` is).

    The four names mean the same here. Several rows under a key: all of them are held.
    """

    def __init__(self, definition: Definition, source: Source, clock: Callable[[], int] = wall_clock_ms) -> None:
        self._definition = definition
        self._source = source
        self._clock = clock
        self._policy = read_settings(definition).on_error
        self._statistics = Statistics(definition)
        self._places = [definition.names.index(name) for name in definition.key]
        self._most_key = definition.layout.parameters.get("max_array_size")
        self._has_increments = "update_field" in definition.source.parameters
        self._rows: dict[Key, Rows] | None = None
        self._loading = Lock()
        self._refreshes = SeenRefreshes()
        self._loaded_since_ms = 0
        self._bytes = 0
        self._reloader = Reloader(definition, self._reload, self._statistics.thread_failed)

    def lookup(self, keys: Sequence[Key], now_ms: int) -> list[Rows]:
        """Raises ServiceUnavailable while nothing could be loaded yet, or does what ``on_error`` says."""
        rows = self._rows
        if rows is None:
            try:
                rows = self._first_load()
            except DovetailError as error:
                rows = self._without_rows(error, keys)
        get = rows.get
        answers = [get(key, ()) for key in keys]
        self._statistics.count(hot=len(keys))
        self._statistics.answered(answers)
        return answers

    def invalidate(self, keys: Sequence[Key] | None = None, prefix: str | None = None, token: str = "") -> int:
        """Loads anew: some keys, or (for a prefix, or nothing) everything; how many keys were held.

        Raises ServiceUnavailable if the source does not answer; the old rows go on answering.
        """
        if not self._refreshes.is_new(token):
            return 0
        self._statistics.count(invalidations=1)
        try:
            return self._refresh(keys, prefix)
        except DovetailError:
            self._refreshes.forget(token)
            raise

    def feed_positions(self, feed: str) -> Mapping[int, int]:
        return {}

    def begin_feed(self, feed: str, positions: Mapping[int, int]) -> None:
        """What was loaded before may lack changes."""
        if self._rows is not None:
            self.invalidate()

    def apply_feed(self, feed: str, partition: int, changes: SourceChanges, now_ms: int) -> None:
        """Fetches the keys anew. Raises ServiceUnavailable if the source does not answer."""
        # Under the lock, since a first load may be under way, from before the changes.
        with self._loading:
            is_loaded = self._rows is not None
        if is_loaded and (changes.by_key or changes.is_whole):
            self.invalidate(None if changes.is_whole else list(changes.by_key))
        self._statistics.count(
            feed_records=changes.records, feed_rejected=changes.rejected, feed_invalidated=len(changes.by_key)
        )

    def load(self) -> None:
        """Loads everything now. Raises ServiceUnavailable; the old rows go on answering."""
        with self._loading:
            self._load(whole=True)

    def misses(self, keys: Sequence[Key], now_ms: int) -> Mapping[Key, tuple[int, int]]:
        return {}

    def statistics(self) -> Mapping[str, Any]:
        held = len(self._rows or ())
        return self._statistics.report(
            element_count=held,
            bytes_allocated=self._bytes,
            load_factor=1.0 if held else 0.0,
            threads_failing=int(not self._reloader.thread.is_healthy),
        )

    def close(self) -> None:
        self._reloader.close()
        self._source.close()

    def _first_load(self) -> dict[Key, Rows]:
        with self._loading:
            if self._rows is None:
                self._load(whole=True)
                self._reloader.start()
            assert self._rows is not None
            return self._rows

    def _without_rows(self, error: DovetailError, keys: Sequence[Key]) -> dict[Key, Rows]:
        if self._policy is OnError.NULL:
            self._statistics.count(failed_keys=len(keys))
            return {}
        if self._policy is OnError.DEAD_LETTER:
            raise LookupRejected(error.what, where=error.where, fix=error.fix, keys=keys) from error
        raise error

    def _refresh(self, keys: Sequence[Key] | None, prefix: str | None) -> int:
        with self._loading:  # a load that is under way may hold older rows: wait for it, and replace them
            held = {} if self._rows is None else self._rows
            if keys is None or prefix is not None or self._rows is None:
                count = len([key for key in held if prefix is None or key_text(key).startswith(prefix)])
                self._load(whole=True)
                return count
            count = len(held.keys() & keys)
            fresh: dict[Key, Rows] = {}
            for chunk in even_parts(keys, KEYS_PER_STATEMENT):
                self._statistics.count(source_statements=1, source_keys=len(chunk))
                fresh |= self._source.fetch(self._definition.key, chunk)
            # In place, one key after the other: a copy would take as long as the dictionary is large, for each batch of
            # a feed, and what changed together at the source does not come together in a batch anyway.
            held.update(fresh)
            for key in keys:
                if key not in fresh:
                    held.pop(key, None)
            return count

    def _load(self, whole: bool) -> None:
        """The next rows take the place of the present ones. Under ``_loading``."""
        started_s, started_ms = time.monotonic(), self._clock()
        statistics = self._statistics
        statistics.loading_start_ms = started_ms
        statistics.status = Status.LOADING if self._rows is None else Status.LOADED_AND_RELOADING
        try:
            statistics.count(source_statements=1)
            self._rows = self._next_rows(whole)
        except DovetailError as error:
            statistics.count(source_errors=1)
            statistics.failed(error)
            statistics.status = Status.FAILED if self._rows is None else Status.LOADED
            raise
        self._loaded_since_ms = started_ms
        self._bytes = _estimated_bytes(self._rows)
        statistics.loaded(self._clock(), time.monotonic() - started_s)

    def _next_rows(self, whole: bool) -> dict[Key, Rows]:
        source = self._source
        if self._rows is not None and not whole and self._has_increments and isinstance(source, Incremental):
            return self._rows | self._by_key(row for piece in source.load_since(self._loaded_since_ms) for row in piece)
        return self._by_key(row for piece in source.load() for row in piece)

    def _by_key(self, rows: Iterable[Row]) -> dict[Key, Rows]:
        """Rows without a NULL in their key, which nothing equals. Raises SourceRefused for a key beyond the array."""
        by_key: dict[Key, Rows] = {}
        if len(self._places) == 1:
            [place] = self._places
            for row in rows:
                key = row[place]
                if key is not None:
                    by_key[key] = (*by_key.get(key, ()), row)
            if self._most_key is not None:
                self._check_bound(by_key)
            return by_key
        for row in rows:
            key = tuple([row[place] for place in self._places])
            if None not in key:
                by_key[key] = (*by_key.get(key, ()), row)
        return by_key

    def _check_bound(self, keys: Iterable[Key]) -> None:
        beyond = next((key for key in keys if not 0 <= key < int(self._most_key or 0)), None)
        if beyond is not None:
            raise SourceRefused(
                f"the source has the key {beyond}, and MAX_ARRAY_SIZE is {self._most_key}",
                where=f'dictionary "{self._definition.name}", LAYOUT(FLAT(..))',
                fix="raise MAX_ARRAY_SIZE, or take LAYOUT(HASHED())",
            )

    def _reload(self) -> None:
        with self._loading:
            self._load(whole=False)


def _estimated_bytes(rows: Mapping[Key, Rows]) -> int:
    """From the sizes of the first 1,000 entries."""
    sampled = 0
    for count, (key, found) in enumerate(rows.items()):
        if count == _SAMPLED_ROWS:
            break
        sampled += sys.getsizeof(key) + sys.getsizeof(found)
        sampled += sum(sys.getsizeof(row) + sum(map(sys.getsizeof, row)) for row in found)
    counted = min(len(rows), _SAMPLED_ROWS)
    return sys.getsizeof(rows) + (sampled * len(rows) // counted if counted else 0)
