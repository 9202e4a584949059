"""Single flight among workers: of all that miss a key, the one that locks it in Redis asks the source."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from dovetail.changelog.lookup import Key, Rows
from dovetail.changelog.work.backoff import Backoff
from dovetail.dictionaries.cache.cache_settings import CacheSettings
from dovetail.dictionaries.cache.cold.key_locks import Claim
from dovetail.dictionaries.cache.filling.cold_layers import TolerantColdTier
from dovetail.dictionaries.cache.filling.entry_writer import EntryWriter
from dovetail.dictionaries.cache.filling.fetcher import SourceLayer
from dovetail.dictionaries.cache.flights.flight import Flight, Unanswered, all_unanswered
from dovetail.dictionaries.cache.hot.guarded_hot import GuardedHot
from dovetail.dictionaries.cache.layout_statistics import Statistics

_PAUSES = Backoff(first_s=0.002, longest_s=0.02)


class ClaimedKeys:
    """Locks keys, asks the source for those, and stores what it gives in both tiers."""

    def __init__(self, cold: TolerantColdTier, guarded: GuardedHot, writer: EntryWriter, source: SourceLayer) -> None:
        self._cold = cold
        self._guarded = guarded
        self._writer = writer
        self._source = source

    def claim(self, flight: Flight, keys: Sequence[Key]) -> Claim:
        """What others have stored meanwhile is taken."""
        claim = self._cold.claim(keys, flight.now_ms, flight.ahead)
        self._guarded.take(flight, claim.entries)
        return claim

    def ask(self, flight: Flight, claim: Claim) -> Unanswered | None:
        if not claim.mine:
            return None

        def keep(chunk: Sequence[Key], found: dict[Key, Rows]) -> None:
            written = self._writer.write(chunk, found, flight.now_ms)
            self._cold.store(claim.lease, written.values)
            self._guarded.store(flight, written.entries, written.values)

        with self._cold.kept(claim.lease, claim.mine):
            unanswered = self._source.ask(flight, claim.mine, keep)
        if unanswered is not None:
            self._cold.release(claim.lease, unanswered.keys)
        return unanswered


class KeyLockLayer:
    """Asks for the keys that no other worker asks for, then waits for the others' answers.

    Whoever does not answer within ``timeout_ms`` is waited for no longer: the keys are asked for here.
    """

    def __init__(
        self,
        claimed: ClaimedKeys,
        settings: CacheSettings,
        statistics: Statistics,
        elapsed_s: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._claimed = claimed
        self._timeout_s = settings.timeout_ms / 1000
        self._statistics = statistics
        self._elapsed_s = elapsed_s
        self._sleep = sleep

    def answer(self, flight: Flight, keys: Sequence[Key]) -> Unanswered | None:
        deadline_s = self._elapsed_s() + self._timeout_s
        pauses = _PAUSES.pauses()
        claim = self._claimed.claim(flight, keys)
        self._statistics.count(coalesced=len(claim.busy))
        failures = [self._claimed.ask(flight, claim)]
        while claim.busy:
            self._sleep(next(pauses))
            if self._elapsed_s() > deadline_s:
                claim = Claim(None, mine=claim.busy)
            else:
                claim = self._claimed.claim(flight, claim.busy)
            failures.append(self._claimed.ask(flight, claim))
        return all_unanswered([failure for failure in failures if failure is not None])


class RenewalLayer:
    """Asks for the keys that no other worker asks for, and leaves the rest to the others."""

    def __init__(self, claimed: ClaimedKeys, statistics: Statistics) -> None:
        self._claimed = claimed
        self._statistics = statistics

    def answer(self, flight: Flight, keys: Sequence[Key]) -> Unanswered | None:
        claim = self._claimed.claim(flight, keys)
        self._statistics.count(refreshed=len(claim.mine))
        return self._claimed.ask(flight, claim)
