"""The cold tier as a layer, and as one that may be gone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from dovetail.changelog.errors import ServiceUnavailable
from dovetail.changelog.lookup import Key
from dovetail.dictionaries.cache.cache_entry import CacheEntry
from dovetail.dictionaries.cache.cold.cold_entries import EncodedEntry
from dovetail.dictionaries.cache.cold.cold_tier import ColdTier
from dovetail.dictionaries.cache.cold.key_locks import Claim, Lease
from dovetail.dictionaries.cache.cold.local_entries import LocalEntries
from dovetail.dictionaries.cache.flights.flight import Flight, Layer, Unanswered
from dovetail.dictionaries.cache.hot.guarded_hot import GuardedHot
from dovetail.dictionaries.cache.layout_statistics import Statistics

T = TypeVar("T")


class TolerantColdTier:
    """Redis being gone is a miss, not an error; so is having none (``cold`` None).

    Without Redis there is nobody to share with: all keys that are claimed are ours, under no lease. ``local`` is read
    in its place; it is written where the hot tier is, by ``GuardedHot``.
    """

    def __init__(self, cold: ColdTier | None, statistics: Statistics, local: LocalEntries | None = None) -> None:
        self._cold = cold
        self._local = local
        self._statistics = statistics

    def read(self, keys: Sequence[Key]) -> dict[Key, CacheEntry]:
        if self._local is not None:
            return self._local.read(keys)
        nothing: dict[Key, CacheEntry] = {}
        return self._tolerant(lambda cold: cold.entries.read(keys), nothing)

    def claim(self, keys: Sequence[Key], now_ms: int, ahead: float = 0.0) -> Claim:
        return self._tolerant(lambda cold: cold.locks.claim(keys, now_ms, ahead), Claim(None, mine=list(keys)))

    def kept(self, lease: Lease | None, keys: Sequence[Key]) -> AbstractContextManager[None]:
        return nullcontext() if self._cold is None or lease is None else self._cold.locks.kept(lease, keys)

    def store(self, lease: Lease | None, values: Mapping[Key, EncodedEntry]) -> None:
        if lease is not None:
            self._tolerant(lambda cold: cold.locks.store(lease, values), None)

    def release(self, lease: Lease | None, keys: Sequence[Key]) -> None:
        if lease is not None:
            self._tolerant(lambda cold: cold.locks.release(lease, keys), None)

    def _tolerant(self, command: Callable[[ColdTier], T], otherwise: T) -> T:
        if self._cold is None:
            return otherwise
        try:
            return command(self._cold)
        except ServiceUnavailable as error:
            self._statistics.failed(error)
            return otherwise


class ColdLayer:
    """Answers with entries of Redis, and takes them into the hot tier; those that have expired stay with the flight."""

    def __init__(self, cold: TolerantColdTier, guarded: GuardedHot, statistics: Statistics, below: Layer) -> None:
        self._cold = cold
        self._guarded = guarded
        self._statistics = statistics
        self._below = below

    def answer(self, flight: Flight, keys: Sequence[Key]) -> Unanswered | None:
        fresh = self._cold.read(keys)
        flight.expired = {key: entry for key, entry in fresh.items() if not flight.is_fresh(entry)}
        if flight.expired:
            fresh = {key: entry for key, entry in fresh.items() if key not in flight.expired}
        self._guarded.take(flight, fresh)
        self._statistics.count(cold=len(fresh), misses=len(keys) - len(fresh))
        left = flight.unanswered(keys)
        return self._below.answer(flight, left) if left else None
