"""The hot tier and the flights that fill it: what was fetched before an invalidation is not stored after it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from threading import Lock

from changelog.lookup import Key
from dictionaries.cache.entry import CacheEntry
from dictionaries.cache.flights.flights import Flight, Flights
from dictionaries.cache.hot.tier import HotTier
from dictionaries.cache.invalidation import Invalidation


class GuardedHot:
    """Entries come in through a flight, and invalidations spoil the flights that are under way.

        flight opens ─▶ reads an old row ─▶ invalidation: drops, spoils ─▶ flight stores: the spoiled keys are left out

    Storing and dropping exclude each other, so an invalidation comes either before the look at what is spoiled, or
    after the store, and then finds the entry to drop.
    """

    def __init__(self, hot: HotTier) -> None:
        self.hot = hot
        self._flights = Flights()
        self._lock = Lock()

    def open(self, keys: Sequence[Key]) -> Flight:
        return self._flights.open(keys)

    def lead(self, flight: Flight, keys: Sequence[Key]) -> dict[Flight, list[Key]]:
        return self._flights.lead(flight, keys)

    def flying(self, flight: Flight) -> AbstractContextManager[None]:
        return self._flights.flying(flight)

    def store(self, flight: Flight, entries: Mapping[Key, CacheEntry], until_ms: float = math.inf) -> None:
        with self._lock:
            if flight.spoiled:
                entries = {key: entry for key, entry in entries.items() if key not in flight.spoiled}
            self.hot.store(entries, until_ms)

    def drop(self, invalidation: Invalidation) -> int:
        """How many entries were held."""
        with self._lock:
            self._flights.spoil(invalidation.concerned)
            return self.hot.drop(invalidation.keys, invalidation.prefix)

    def replace(self, entries: Mapping[Key, CacheEntry]) -> None:
        """Stores entries that are newer than anything a flight brings."""
        with self._lock:
            self._flights.spoil(Invalidation(tuple(entries)).concerned)
            self.hot.store(entries)
