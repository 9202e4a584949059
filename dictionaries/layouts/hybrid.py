"""HYBRID_HASH_CACHE: hot keys in the process, all keys in Redis until their TTL, misses asked at the source.

lookup ─▶ hot tier ─▶ (one thread per key) ─▶ cold tier ─▶ (one worker per key) ─▶ source
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from changelog.errors import ServiceUnavailable
from changelog.lookup import Key, Rows
from dictionaries.cache.cold.codec import EntryCodec
from dictionaries.cache.cold.redis_client import open_redis
from dictionaries.cache.cold.tier import ColdTier
from dictionaries.cache.filling.entry_writer import EntryWriter
from dictionaries.cache.filling.fetcher import Fetcher
from dictionaries.cache.filling.misses import Misses
from dictionaries.cache.filling.refresh_ahead import Background
from dictionaries.cache.hot.guarded import GuardedHot
from dictionaries.cache.hot.tier import HotTier
from dictionaries.cache.invalidation import Invalidation, InvalidationMessage
from dictionaries.cache.refresh.executed import Executed
from dictionaries.cache.refresh.feeding import Feeding
from dictionaries.cache.refresh.listener import Listener
from dictionaries.cache.settings import read_settings
from dictionaries.cache.statistics import Statistics
from dictionaries.contracts import Source
from dictionaries.definition.definition import Definition
from dictionaries.feed.feed import SourceChanges

_FIRST_SUBSCRIPTION_S = 0.5


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


class Hybrid:
    """A hot tier over a cold tier over a source; ``redis_url`` None: no cold tier, each process has its own cache.

    An answer may be served until its TTL, counted from the moment it was fetched, by both tiers. Within that time a key
    is asked for once by all workers together, unless Redis evicts it, is gone, or does not take it for its size.

    What was fetched before an invalidation is never stored after it: in Redis by locks (``cache/scripts.py``), in the
    process by ``cache/guarded.py``. An invalidation reaches the other processes by a channel of Redis; one that may
    have missed some, because its connection was lost, drops its whole hot tier.

    ``clock`` is for what happens behind the lookups: renewing entries near their expiry.
    """

    def __init__(
        self,
        definition: Definition,
        source: Source,
        redis_url: str | None,
        clock: Callable[[], int] = wall_clock_ms,
    ) -> None:
        settings = read_settings(definition)
        statistics = Statistics(definition)
        codec = EntryCodec([column.type for column in definition.columns])
        self._clock = clock
        self._statistics = statistics
        self._hot = HotTier(settings.hot_keys, settings.hot_bytes, settings.keep_ms, settings.ahead_ms)
        self._guarded = GuardedHot(self._hot)
        self._fetcher = Fetcher(definition, source, settings, statistics)
        self._writer = EntryWriter(codec, settings, statistics)
        self._executed = Executed()
        self._background = Background(definition.name, self._renew)
        self._cold: ColdTier | None = None
        self._listener: Listener | None = None
        if redis_url is not None:
            self._cold = ColdTier(redis_url, definition, settings, codec, statistics, self._distrust)
        self._misses = Misses(
            self._guarded,
            self._cold,
            self._fetcher,
            self._writer,
            settings,
            statistics,
            is_heard=lambda: self._listener is not None and self._listener.is_listening,
            renew=self._background.ask,
        )
        self._feeding = Feeding(self._guarded, self._cold, self._writer, statistics)
        if redis_url is not None and self._cold is not None:
            client = open_redis(redis_url, settings.redis_timeout_ms)
            self._listener = Listener(client, self._cold.channel, self._heard, self._distrust)
            self._listener.wait(_FIRST_SUBSCRIPTION_S)

    def lookup(self, keys: Sequence[Key], now_ms: int) -> list[Rows]:
        """The rows under distinct keys. Raises what ``on_error`` says if the source does not answer."""
        found = self._hot.lookup(keys, now_ms)
        missing = [key for key, rows in zip(keys, found, strict=True) if rows is None] if None in found else []
        soon = self._hot.soon(keys)
        if soon:
            self._background.ask(soon)
        self._statistics.count(hot=len(keys) - len(missing))
        self._sample_age(keys, now_ms)
        if missing:
            others = self._misses.answer(missing, now_ms)
            found = [others[key] if rows is None else rows for key, rows in zip(keys, found, strict=True)]
        answers: list[Rows] = found  # type: ignore[assignment]  # no None is left in it
        self._statistics.answered(answers)
        return answers

    def invalidate(self, keys: Sequence[Key] | None = None, prefix: str | None = None, token: str = "") -> int:
        """Forgets entries here, in Redis, and in every other worker that can be reached; how many were held.

        If Redis does not answer, this process forgets its own, and does the rest before it uses Redis again.
        """
        if not self._executed.first(token):
            return 0
        invalidation = Invalidation(None if keys is None else tuple(keys), prefix, token)
        self._statistics.count(invalidations=1)
        held = 0
        if self._cold is not None:
            try:
                held = self._cold.invalidate(invalidation)
            except ServiceUnavailable as error:
                self._statistics.failed(error)
        # After Redis, so that nothing old can come from there once the hot tier is clean.
        return max(held, self._guarded.drop(invalidation))

    def store(self, rows: Mapping[Key, Rows], now_ms: int) -> None:
        """The newest rows of some keys, from a feed of changes, take the place of their entries everywhere."""
        written = self._writer.write(list(rows), {key: found for key, found in rows.items() if found}, now_ms)
        if self._cold is None:
            self._guarded.drop(Invalidation(tuple(rows)))
            self._guarded.replace(written.entries)
            return
        try:
            self._cold.put(written.values)
        except ServiceUnavailable:
            self.invalidate(list(rows))
        else:
            # Not into the hot tier: between these two lines another worker may invalidate the same key.
            self._guarded.drop(Invalidation(tuple(rows)))

    def feed_positions(self, feed: str) -> Mapping[int, int]:
        return self._feeding.positions(feed)

    def begin_feed(self, feed: str, positions: Mapping[int, int]) -> None:
        self._feeding.begin(feed, positions)

    def apply_feed(self, feed: str, partition: int, changes: SourceChanges, now_ms: int) -> None:
        self._feeding.apply(feed, partition, changes, now_ms)

    def statistics(self) -> Mapping[str, Any]:
        """Of this process; ``element_count`` and the bytes are those of the hot tier."""
        hot = self._hot
        return self._statistics.report(
            element_count=len(hot),
            bytes_allocated=hot.bytes,
            load_factor=len(hot) / hot.max_keys,
            evictions=hot.evictions,
            is_listening=self._listener is not None and self._listener.is_listening,
        )

    def close(self) -> None:
        self._background.close()
        if self._listener is not None:
            self._listener.close()
        if self._cold is not None:
            self._cold.close()
        self._fetcher.close()

    def _renew(self, keys: Sequence[Key]) -> None:
        self._misses.renewed(keys, self._clock())

    def _heard(self, message: InvalidationMessage) -> None:
        """Another worker has executed an invalidation."""
        if self._cold is None or message.origin == self._cold.origin:
            return
        if message.invalidation.is_whole:
            self._cold.forget_version()
        self._guarded.drop(message.invalidation)
        self._executed.first(message.invalidation.token)

    def _distrust(self) -> None:
        """Invalidations may have been missed: nothing that is held here can be trusted."""
        if self._guarded.drop(Invalidation()):
            self._statistics.count(dropped_untrusted=1)

    def _sample_age(self, keys: Sequence[Key], now_ms: int) -> None:
        for entry in self._hot.kept(keys[:1]).values():
            if entry.expires_ms > now_ms:
                self._statistics.served(now_ms - entry.fetched_ms)
