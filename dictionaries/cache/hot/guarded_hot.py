"""The hot tier and the flights that fill it: what was fetched before an invalidation is not stored after it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from threading import Lock

from dovetail.changelog.lookup import Key
from dovetail.dictionaries.cache.cache_entry import CacheEntry
from dovetail.dictionaries.cache.cold.cold_entries import EncodedEntry
from dovetail.dictionaries.cache.cold.local_entries import LocalEntries
from dovetail.dictionaries.cache.flights.flight import Flight
from dovetail.dictionaries.cache.flights.flights import Flights
from dovetail.dictionaries.cache.hot.hot_tier import HotTier
from dovetail.dictionaries.cache.invalidation import Invalidation

UNHEARD_MS = 1_000
"""How long the hot tier holds an entry while no invalidation can be heard: what is served is then no staler than it
would be if they were heard."""


class GuardedHot:
    """Entries come in through a flight, and invalidations spoil the flights that are under way.

        flight opens ─▶ reads an old row ─▶ invalidation: drops, spoils ─▶ flight stores: the spoiled keys are left out

    Storing and dropping exclude each other, so an invalidation comes either before the look at what is spoiled, or
    after the store, and then finds the entry to drop.

    is_heard  whether invalidations of other workers reach this process now
    local     the cold tier of a process without Redis: it changes with the hot one
    """

    def __init__(
        self,
        hot: HotTier,
        flights: Flights,
        is_heard: Callable[[], bool] = lambda: True,
        local: LocalEntries | None = None,
    ) -> None:
        self._local = local
        self._hot = hot
        self._flights = flights
        self._is_heard = is_heard
        self._lock = Lock()

    def take(self, flight: Flight, entries: Mapping[Key, CacheEntry]) -> None:
        """Answers with the entries, and stores them."""
        if entries:
            flight.answer({key: entry.rows for key, entry in entries.items()})
            self.store(flight, entries)

    def store(
        self, flight: Flight, entries: Mapping[Key, CacheEntry], values: Mapping[Key, EncodedEntry] | None = None
    ) -> None:
        """``values``: the same for the local tier, if they do not come from there."""
        until_ms = math.inf if self._is_heard() else flight.now_ms + UNHEARD_MS
        with self._lock:
            if flight.spoiled:
                entries = {key: entry for key, entry in entries.items() if key not in flight.spoiled}
            self._hot.store(entries, until_ms)
            if self._local is not None and values:
                kept = {key: value for key, value in values.items() if key not in flight.spoiled}
                self._local.store(kept, flight.now_ms)

    def drop(self, invalidation: Invalidation) -> int:
        """How many entries were held."""
        with self._lock:
            self._flights.spoil(invalidation.concerned)
            local = self._local.drop(invalidation) if self._local is not None else 0
            return max(local, self._hot.drop(invalidation.keys, invalidation.prefix))

    def replace(self, entries: Mapping[Key, CacheEntry], values: Mapping[Key, EncodedEntry], now_ms: int) -> None:
        """Stores entries that are newer than anything a flight brings."""
        with self._lock:
            self._flights.spoil(Invalidation(tuple(entries)).concerned)
            self._hot.store(entries)
            if self._local is not None:
                self._local.store(values, now_ms)
