"""The hot tier as layers: looked at first, and looked at again by whoever is about to ask the source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from dovetail.changelog.lookup import Key, Rows
from dovetail.dictionaries.cache.cache_entry import CacheEntry
from dovetail.dictionaries.cache.flights.flight import Flight, Layer, Unanswered
from dovetail.dictionaries.cache.flights.flight_layers import FlightLayer
from dovetail.dictionaries.cache.hot.guarded_hot import GuardedHot
from dovetail.dictionaries.cache.hot.hot_tier import HotTier
from dovetail.dictionaries.cache.layout_statistics import Statistics


class HotLayer:
    """Answers from the memory of the process; the other keys go below. What arrives there is stored by ``GuardedHot``,
    statement by statement, so that others need not wait for the end of the flight.

    renew  asks, behind the lookup, for keys that are near their expiry
    """

    def __init__(
        self, hot: HotTier, statistics: Statistics, renew: Callable[[Iterable[Key]], None], below: FlightLayer
    ) -> None:
        self._hot = hot
        self._statistics = statistics
        self._renew = renew
        self._below = below

    def lookup(self, keys: Sequence[Key], now_ms: int) -> list[Rows]:
        found = self._hot.lookup(keys, now_ms)
        missing = [key for key, rows in zip(keys, found, strict=True) if rows is None] if None in found else []
        soon = self._hot.soon(keys)
        if soon:
            self._renew(soon)
        self._statistics.count(hot=len(keys) - len(missing))
        self._sample_age(keys, now_ms)
        if missing:
            others = self._below.answers(missing, now_ms)
            found = [others[key] if rows is None else rows for key, rows in zip(keys, found, strict=True)]
        answers: list[Rows] = found  # type: ignore[assignment]  # no None is left in it
        return answers

    def _sample_age(self, keys: Sequence[Key], now_ms: int) -> None:
        for entry in self._hot.kept(keys[:1]).values():
            if entry.expires_ms > now_ms:
                self._statistics.served(now_ms - entry.fetched_ms)


class SecondLookLayer:
    """What other flights have brought since the first look: they led the keys until this one could."""

    def __init__(self, hot: HotTier, below: Layer) -> None:
        self._hot = hot
        self._below = below

    def answer(self, flight: Flight, keys: Sequence[Key]) -> Unanswered | None:
        held = self._hot.kept(keys)
        flight.answer({key: entry.rows for key, entry in held.items() if flight.is_fresh(entry)})
        left = flight.unanswered(keys)
        return self._below.answer(flight, left) if left else None


class AbsenceLayer:
    """Holds the keys that the layer below finds to be absent, and nothing else."""

    def __init__(self, guarded: GuardedHot, ttl_ms: int, statistics: Statistics, below: Layer) -> None:
        self._guarded = guarded
        self._ttl_ms = ttl_ms
        self._statistics = statistics
        self._below = below

    def answer(self, flight: Flight, keys: Sequence[Key]) -> Unanswered | None:
        unanswered = self._below.answer(flight, keys)
        now_ms, expires_ms = flight.now_ms, flight.now_ms + self._ttl_ms
        absent = [key for key in keys if flight.answers.get(key) == ()]
        if absent and self._ttl_ms:
            self._guarded.store(flight, dict.fromkeys(absent, CacheEntry((), now_ms, expires_ms, 0)))
            self._statistics.count(negative_stored=len(absent))
        return unanswered
