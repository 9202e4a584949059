"""Entries past their expiry: kept for a while, and served while they are renewed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from dovetail.changelog.lookup import Key
from dovetail.dictionaries.cache.cache_settings import CacheSettings
from dovetail.dictionaries.cache.flights.flight import Flight, Layer, Unanswered
from dovetail.dictionaries.cache.hot.hot_tier import HotTier
from dovetail.dictionaries.cache.layout_statistics import Statistics


class KeptLayer:
    """Adds to the flight what the hot tier keeps of its keys; of an entry that Redis has as well, that of Redis."""

    def __init__(self, hot: HotTier, settings: CacheSettings, below: Layer) -> None:
        self._hot = hot
        self._settings = settings
        self._below = below

    def answer(self, flight: Flight, keys: Sequence[Key]) -> Unanswered | None:
        if self._settings.keep_ms:
            flight.expired = self._hot.kept(keys) | flight.expired
        return self._below.answer(flight, keys)


class StaleLayer:
    """Answers with entries that have expired not long ago (``stale_while_revalidate``), and has them renewed.

    renew  asks for keys behind the lookup
    """

    def __init__(
        self, settings: CacheSettings, statistics: Statistics, renew: Callable[[Iterable[Key]], None], below: Layer
    ) -> None:
        self._revalidate_ms = settings.revalidate_ms
        self._statistics = statistics
        self._renew = renew
        self._below = below

    def answer(self, flight: Flight, keys: Sequence[Key]) -> Unanswered | None:
        if self._revalidate_ms and flight.expired:
            keys = self._serve(flight, keys)
        return self._below.answer(flight, keys) if keys else None

    def _serve(self, flight: Flight, keys: Sequence[Key]) -> list[Key]:
        """The keys without an entry young enough."""
        oldest_ms, expired = flight.now_ms - self._revalidate_ms, flight.expired
        served = {key: expired[key].rows for key in keys if key in expired and expired[key].expires_ms > oldest_ms}
        if served:
            flight.answer(served)
            self._statistics.count(stale_served=len(served))
            self._renew(served)
        return [key for key in keys if key not in served]
