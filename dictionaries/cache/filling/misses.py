"""Answering what the hot tier does not hold: Redis, then the source, each key by one worker."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from changelog.errors import ServiceUnavailable
from changelog.lookup import Key, Rows
from dictionaries.cache.cold.tier import Claim, ColdTier
from dictionaries.cache.entry import CacheEntry
from dictionaries.cache.filling.entry_writer import EntryWriter
from dictionaries.cache.filling.fetcher import Fetcher
from dictionaries.cache.filling.on_error import Unanswered, substitutes
from dictionaries.cache.flights.flights import Flight
from dictionaries.cache.flights.leases import Lease
from dictionaries.cache.hot.guarded import GuardedHot
from dictionaries.cache.settings import CacheSettings
from dictionaries.cache.statistics import Statistics

T = TypeVar("T")
UNHEARD_MS = 1_000
"""How long the hot tier holds an entry while no invalidation can be heard: what is served is then no staler than it
would be if they were heard."""
_FIRST_PAUSE_S = 0.002
_LONGEST_PAUSE_S = 0.02

Renew = Callable[[Iterable[Key]], None]


class Misses:
    """The way from a miss to its answer. Thread-safe.

    is_heard  whether invalidations of other workers reach this process now
    renew     asks for keys behind the lookup
    """

    def __init__(
        self,
        guarded: GuardedHot,
        cold: ColdTier | None,
        fetcher: Fetcher,
        writer: EntryWriter,
        settings: CacheSettings,
        statistics: Statistics,
        is_heard: Callable[[], bool],
        renew: Renew,
        elapsed_s: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._guarded = guarded
        self._cold = cold
        self._fetcher = fetcher
        self._writer = writer
        self._settings = settings
        self._statistics = statistics
        self._is_heard = is_heard
        self._renew = renew
        self._elapsed_s = elapsed_s
        self._sleep = sleep

    def answer(self, keys: Sequence[Key], now_ms: int) -> dict[Key, Rows]:
        """The rows under distinct keys. Raises what ``on_error`` says for keys that the source does not answer."""
        flight = self._guarded.open(keys)
        with self._guarded.flying(flight):
            kept = self._from_redis(flight, now_ms)
            missing = _unanswered(flight, keys)
            if missing and kept and self._settings.revalidate_ms:
                missing = self._serve_expired(flight, missing, kept, now_ms)
            # Redis is read by whoever needs it: to wait for another's reading would take longer.
            joined = self._guarded.lead(flight, missing)
            if flight.led:
                self._fill(flight, kept, now_ms)
        if not joined:
            return flight.answers
        self._statistics.count(coalesced=sum(map(len, joined.values())))
        answers = flight.answers_with(joined)
        # Whoever led them failed, or left them to another worker that renews them already.
        left = [key for key in missing if key not in answers]
        return answers | self.answer(left, now_ms) if left else answers

    def renewed(self, keys: Sequence[Key], now_ms: int) -> None:
        """Asks for keys whose entries expire soon, or have expired, unless somebody else does already."""
        flight = self._guarded.open(keys)
        with self._guarded.flying(flight):
            self._guarded.lead(flight, keys)
            until_ms = now_ms + self._settings.ahead_ms
            due = self._not_in_memory(flight, until_ms)
            if not due:
                return
            claim = self._claim(due, until_ms)
            self._take(flight, claim.entries, now_ms)
            if claim.mine:
                self._statistics.count(refreshed=len(claim.mine))
                unanswered = self._ask(flight, claim.lease, claim.mine, now_ms)
                if unanswered is not None:
                    raise unanswered.error

    def _from_redis(self, flight: Flight, now_ms: int) -> dict[Key, CacheEntry]:
        """Takes what Redis holds; the entries that have expired, there or here."""
        nothing: dict[Key, CacheEntry] = {}
        cold = self._tolerant(lambda tier: tier.read(flight.keys), nothing)
        expired = {key: entry for key, entry in cold.items() if entry.expires_ms <= now_ms}
        fresh = {key: entry for key, entry in cold.items() if key not in expired} if expired else cold
        self._take(flight, fresh, now_ms)
        self._statistics.count(cold=len(fresh), misses=len(flight.keys) - len(fresh))
        return (self._guarded.hot.kept(flight.keys) if self._settings.keep_ms else {}) | expired

    def _fill(self, flight: Flight, kept: Mapping[Key, CacheEntry], now_ms: int) -> None:
        """Answers the keys that the flight leads."""
        missing = self._not_in_memory(flight, now_ms)
        unanswered = self._from_source(flight, missing, now_ms) if missing else None
        if unanswered is not None:
            flight.answers.update(substitutes(self._settings, self._statistics, unanswered, kept, now_ms))

    def _not_in_memory(self, flight: Flight, until_ms: int) -> list[Key]:
        """What the flight leads, less the entries past ``until_ms`` that others brought who led them before."""
        held = self._guarded.hot.kept(flight.led)
        flight.answers.update({key: entry.rows for key, entry in held.items() if entry.expires_ms > until_ms})
        return _unanswered(flight, flight.led)

    def _serve_expired(
        self, flight: Flight, missing: Sequence[Key], kept: Mapping[Key, CacheEntry], now_ms: int
    ) -> list[Key]:
        """Answers with entries that have expired not long ago, and has them renewed; the keys without one."""
        oldest_ms = now_ms - self._settings.revalidate_ms
        served = {key: kept[key].rows for key in missing if key in kept and kept[key].expires_ms > oldest_ms}
        if served:
            flight.answers.update(served)
            self._statistics.count(stale_served=len(served))
            self._renew(served)
        return [key for key in missing if key not in served]

    def _from_source(self, flight: Flight, keys: Sequence[Key], now_ms: int) -> Unanswered | None:
        """Asks for the keys that no other worker asks for, then waits for the others' answers."""
        deadline_s = self._elapsed_s() + self._settings.timeout_ms / 1000
        pause_s = _FIRST_PAUSE_S
        failures: list[Unanswered] = []
        waiting: Sequence[Key] = keys
        while waiting:
            if self._elapsed_s() > deadline_s:
                claim = Claim(_NO_LEASE, mine=list(waiting))
            else:
                claim = self._claim(waiting, now_ms)
            self._take(flight, claim.entries, now_ms)
            if claim.mine:
                unanswered = self._ask(flight, claim.lease, claim.mine, now_ms)
                failures += [] if unanswered is None else [unanswered]
            if len(waiting) == len(keys):
                self._statistics.count(coalesced=len(claim.busy))
            waiting = claim.busy
            if waiting:
                self._sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        if not failures:
            return None
        return Unanswered([key for failure in failures for key in failure.keys], failures[0].error)

    def _ask(self, flight: Flight, lease: Lease, keys: Sequence[Key], now_ms: int) -> Unanswered | None:
        def arrived(chunk: Sequence[Key], found: dict[Key, Rows]) -> None:
            written = self._writer.write(chunk, found, now_ms)
            if lease is not _NO_LEASE:
                self._tolerant(lambda tier: tier.store(lease, written.values), None)
            self._guarded.store(flight, written.entries, self._until(now_ms))
            flight.answers.update(dict.fromkeys(chunk, ()) | found)

        with self._keeping(lease, keys):
            unanswered = self._fetcher.fetch(keys, arrived, now_ms)
        if unanswered is not None and lease is not _NO_LEASE:
            failed = unanswered.keys
            self._tolerant(lambda tier: tier.release(lease, failed), None)
        return unanswered

    def _keeping(self, lease: Lease, keys: Sequence[Key]) -> AbstractContextManager[None]:
        if self._cold is None or lease is _NO_LEASE:
            return nullcontext()
        return self._cold.keeping(lease, keys)

    def _claim(self, keys: Sequence[Key], fresh_after_ms: int) -> Claim:
        """Without Redis there is nobody to share with: all keys are ours, and go to the hot tier only."""
        return self._tolerant(lambda tier: tier.claim(keys, fresh_after_ms), Claim(_NO_LEASE, mine=list(keys)))

    def _take(self, flight: Flight, entries: Mapping[Key, CacheEntry], now_ms: int) -> None:
        if entries:
            flight.answers.update({key: entry.rows for key, entry in entries.items()})
            self._guarded.store(flight, entries, self._until(now_ms))

    def _until(self, now_ms: int) -> float:
        return math.inf if self._cold is None or self._is_heard() else now_ms + UNHEARD_MS

    def _tolerant(self, command: Callable[[ColdTier], T], otherwise: T) -> T:
        """Redis being gone is a miss, not an error."""
        if self._cold is None:
            return otherwise
        try:
            return command(self._cold)
        except ServiceUnavailable as error:
            self._statistics.failed(error)
            return otherwise


def _unanswered(flight: Flight, keys: Sequence[Key]) -> list[Key]:
    return [key for key in keys if key not in flight.answers]


_NO_LEASE = Lease("", "", "")
