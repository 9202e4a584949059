"""The figures of a dictionary, under the names of ClickHouse's system.dictionaries."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from threading import Lock
from typing import Any

from dovetail.changelog.lookup import Key, Lookup, Rows
from dovetail.dictionaries.definition.definition import Definition


class Status(StrEnum):
    NOT_LOADED = "NOT_LOADED"
    LOADED = "LOADED"
    FAILED = "FAILED"
    LOADING = "LOADING"
    LOADED_AND_RELOADING = "LOADED_AND_RELOADING"
    FAILED_AND_RELOADING = "FAILED_AND_RELOADING"


class Statistics:
    """Counts since the layout was opened. Thread-safe; counted a batch at a time."""

    COUNTERS = (
        "query_count",  # keys that were looked up
        "hot",  # .. answered by the memory of the process
        "cold",  # .. by Redis, or by the stream's rows
        "misses",  # .. by neither: asked at the source, or coalesced
        "found",  # keys that have rows
        "coalesced",  # keys that somebody else was already asking for, in this process or another
        "source_statements",
        "source_keys",
        "source_errors",  # statements that failed, each attempt
        "stale_served",
        "failed_keys",  # answered as absent because the source did not answer (on_error = 'null')
        "negative_stored",
        "oversize",  # entries above max_value_bytes, not cached
        "redis_errors",
        "refreshed",  # keys renewed before they were missed
        "invalidations",
        "feed_records",  # records of the feed that this process has read
        "feed_invalidated",  # keys that they made it forget
        "feed_stored",  # keys of which they carried the row
        "feed_rejected",  # records of which no key can be known
        "thread_failures",  # errors that ended the work of a thread behind the lookups, which then began again
        "dropped_untrusted",  # times that the whole hot tier went because invalidations may have been missed
    )

    def __init__(self, definition: Definition) -> None:
        self._definition = definition
        self._lock = Lock()
        self._counts = dict.fromkeys(self.COUNTERS, 0)
        self.status = Status.NOT_LOADED
        self.loading_start_ms: int | None = None
        self.last_success_ms: int | None = None
        self.loading_duration_s = 0.0
        self.last_exception = ""
        self._ages = 0
        self._age_sum_ms = 0
        self._age_max_ms = 0

    def count(self, **counts: int) -> None:
        with self._lock:
            for name, number in counts.items():
                self._counts[name] += number

    def __getitem__(self, name: str) -> int:
        return self._counts[name]

    def answered(self, rows: Sequence[Rows]) -> None:
        """A batch was answered."""
        found = len(rows) - rows.count(())
        with self._lock:
            self._counts["query_count"] += len(rows)
            self._counts["found"] += found

    def served(self, age_ms: int) -> None:
        """The age of a value that was served; one of a batch is enough."""
        with self._lock:
            self._ages += 1
            self._age_sum_ms += age_ms
            self._age_max_ms = max(self._age_max_ms, age_ms)

    def loaded(self, now_ms: int, duration_s: float) -> None:
        """The source answered."""
        with self._lock:
            self.status = Status.LOADED
            self.last_success_ms = now_ms
            self.loading_duration_s = duration_s

    def failed(self, error: BaseException) -> None:
        with self._lock:
            self.last_exception = str(error)
            if self.last_success_ms is None:
                self.status = Status.FAILED

    def thread_failed(self, error: BaseException) -> None:
        """A thread behind the lookups has failed, and will go on."""
        self.count(thread_failures=1)
        with self._lock:
            self.last_exception = f"{type(error).__name__}: {error}"

    def report(self, element_count: int, bytes_allocated: int, load_factor: float, **more: Any) -> dict[str, Any]:
        """A row of system.dictionaries, and what ClickHouse has no name for. Times are ms since 1970, UTC."""
        with self._lock:
            counts = dict(self._counts)
        queried = counts["query_count"]
        hits = counts.pop("hot"), counts.pop("cold")
        least_s, greatest_s = self._definition.lifetime_s
        return {
            "name": self._definition.name,
            "type": self._definition.layout.kind,
            "status": self.status.value,
            "element_count": element_count,
            "bytes_allocated": bytes_allocated,
            "load_factor": load_factor,
            "hit_rate": sum(hits) / queried if queried else 0.0,
            "found_rate": counts.pop("found") / queried if queried else 0.0,
            "lifetime_min": least_s,
            "lifetime_max": greatest_s,
            "loading_start_time": self.loading_start_ms,
            "last_successful_update_time": self.last_success_ms,
            "loading_duration": self.loading_duration_s,
            "last_exception": self.last_exception,
            "hot_hits": hits[0],
            "cold_hits": hits[1],
            "age_mean_ms": self._age_sum_ms / self._ages if self._ages else 0.0,
            "age_max_ms": self._age_max_ms,
            **counts,
            **more,
        }


class MeteredLookup:
    """Counts what the layer below answers: keys looked up, and those that have rows."""

    def __init__(self, statistics: Statistics, below: Lookup) -> None:
        self._statistics = statistics
        self._below = below

    def lookup(self, keys: Sequence[Key], now_ms: int) -> list[Rows]:
        rows = self._below.lookup(keys, now_ms)
        self._statistics.answered(rows)
        return rows
