"""What becomes of keys that the source did not answer."""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.changelog.errors import RecordRejected
from dovetail.changelog.lookup import Key, LookupRejected, Rows
from dovetail.dictionaries.cache.cache_entry import CacheEntry
from dovetail.dictionaries.cache.cache_settings import CacheSettings, OnError
from dovetail.dictionaries.cache.flights.flight import Flight, Layer, Unanswered
from dovetail.dictionaries.cache.layout_statistics import Statistics


class OnErrorLayer:
    """Does what ``on_error`` says with the keys that the layer below could not answer; all others pass.

    Raises the error of the source (STOP, and STALE for a key without an entry young enough), or LookupRejected: for
    DEAD_LETTER, and for rows that answer and cannot be used, which no waiting mends.
    """

    def __init__(self, settings: CacheSettings, statistics: Statistics, below: Layer) -> None:
        self._settings = settings
        self._statistics = statistics
        self._below = below

    def answer(self, flight: Flight, keys: Sequence[Key]) -> Unanswered | None:
        unanswered = self._below.answer(flight, keys)
        if unanswered is not None:
            flight.answer(self._substitutes(flight, unanswered))
        return None

    def _substitutes(self, flight: Flight, unanswered: Unanswered) -> dict[Key, Rows]:
        policy, expired, error = self._settings.on_error, flight.expired, unanswered.error
        if policy is OnError.NULL:
            self._statistics.count(failed_keys=len(unanswered.keys))
            return dict.fromkeys(unanswered.keys, ())
        if policy is OnError.STALE:
            young = {key: expired[key].rows for key in unanswered.keys if self._is_young(expired.get(key), flight)}
            if len(young) == len(unanswered.keys):
                self._statistics.count(stale_served=len(young))
                return young
        if policy is OnError.DEAD_LETTER or isinstance(error, RecordRejected):
            raise LookupRejected(error.what, where=error.where, fix=error.fix, keys=unanswered.keys) from error
        raise error

    def _is_young(self, entry: CacheEntry | None, flight: Flight) -> bool:
        return entry is not None and flight.now_ms < entry.expires_ms + self._settings.max_stale_ms
