"""HYBRID_HASH_CACHE: hot keys in the process, all keys in Redis until their TTL, misses asked at the source.

lookup ─▶ hot tier ─▶ cold tier ─▶ (one thread per key) ─▶ (one worker per key) ─▶ source
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dovetail.changelog.errors import ServiceUnavailable
from dovetail.changelog.lookup import Key, Lookup, Rows
from dovetail.changelog.work.supervised_thread import SupervisedThread
from dovetail.dictionaries.cache.cache_entry import misses_of
from dovetail.dictionaries.cache.cache_settings import CacheSettings, read_settings
from dovetail.dictionaries.cache.cold.cold_tier import ColdTier
from dovetail.dictionaries.cache.cold.entry_codec import EntryCodec
from dovetail.dictionaries.cache.cold.invalidation_listener import Listener
from dovetail.dictionaries.cache.cold.invalidation_messages import InvalidationMessage
from dovetail.dictionaries.cache.cold.local_entries import LocalEntries
from dovetail.dictionaries.cache.cold.redis_client import open_redis
from dovetail.dictionaries.cache.cold.redis_space import RedisSpace
from dovetail.dictionaries.cache.filling.cold_layers import ColdLayer, TolerantColdTier
from dovetail.dictionaries.cache.filling.entry_writer import EntryWriter
from dovetail.dictionaries.cache.filling.feed_intake import FeedIntake
from dovetail.dictionaries.cache.filling.fetcher import Fetcher, SourceLayer
from dovetail.dictionaries.cache.filling.key_lock_layers import ClaimedKeys, KeyLockLayer, RenewalLayer
from dovetail.dictionaries.cache.filling.on_error import OnErrorLayer
from dovetail.dictionaries.cache.filling.renewal import BackgroundRenewal, Renewal
from dovetail.dictionaries.cache.filling.stale_layers import KeptLayer, StaleLayer
from dovetail.dictionaries.cache.flights.flight import stacked
from dovetail.dictionaries.cache.flights.flight_layers import FlightLayer, SingleFlightLayer
from dovetail.dictionaries.cache.flights.flights import Flights
from dovetail.dictionaries.cache.hot.guarded_hot import GuardedHot
from dovetail.dictionaries.cache.hot.hot_layers import HotLayer, SecondLookLayer
from dovetail.dictionaries.cache.hot.hot_tier import HotTier
from dovetail.dictionaries.cache.invalidation import Invalidation, SeenRefreshes
from dovetail.dictionaries.cache.layout_statistics import MeteredLookup, Statistics
from dovetail.dictionaries.contracts import Source
from dovetail.dictionaries.definition.definition import Definition
from dovetail.dictionaries.feed.source_changes import SourceChanges
from dovetail.dictionaries.wall_clock import wall_clock_ms

_FIRST_SUBSCRIPTION_S = 0.5


class Hybrid:
    """A hot tier over a cold tier over a source; ``redis_url`` None: each process its own, in a file in ``local_dir``.

    An answer may be served until its TTL, counted from the moment it was fetched, by both tiers. Within that time a key
    is asked for once by all workers together, unless Redis evicts it, is gone, or does not take it for its size.

    What was fetched before an invalidation is never stored after it: in Redis by locks (``cache/cold/scripts.py``), in
    the process by ``cache/hot/guarded_hot.py``. An invalidation reaches the other processes by a channel of Redis; one
    that may have missed some, because its connection was lost, drops its whole hot tier.

    Entries expire by the clock of Redis: workers whose clocks differ serve none longer than its TTL.

    clock       for what happens behind the lookups: renewing entries near their expiry
    machine_ms  what the clock of Redis is compared with
    """

    def __init__(
        self,
        definition: Definition,
        source: Source,
        redis_url: str | None,
        clock: Callable[[], int] = wall_clock_ms,
        machine_ms: Callable[[], int] = wall_clock_ms,
        local_dir: Path | None = None,
    ) -> None:
        settings = read_settings(definition)
        statistics = Statistics(definition)
        self._statistics = statistics
        self._flights = Flights()
        self._hot = HotTier(settings.hot_keys, settings.hot_bytes, settings.keep_ms, settings.refresh_ahead)
        self._fetcher = Fetcher(definition, source, settings, statistics)
        self._refreshes = SeenRefreshes()
        self._listener: Listener | None = None
        self._cold: ColdTier | None = None
        types = [column.type for column in definition.columns]
        codec = EntryCodec(types)
        if redis_url is not None:
            space = RedisSpace(redis_url, definition, settings, statistics, self._distrust, machine_ms=machine_ms)
            codec = EntryCodec(types, lambda: space.clock.offset_ms)
            self._cold = ColdTier(space, codec)
        self._local: LocalEntries | None = None
        if redis_url is None and local_dir is not None:
            self._local = LocalEntries(local_dir / f"cold-{definition.name}.db", codec)
        self._guarded = GuardedHot(self._hot, self._flights, self._hears, self._local)
        writer = EntryWriter(codec, settings, statistics)
        cold = TolerantColdTier(self._cold, statistics, self._local)
        claimed = ClaimedKeys(cold, self._guarded, writer, SourceLayer(self._fetcher))
        renewal = Renewal(
            self._flights,
            settings.refresh_ahead,
            clock,
            SingleFlightLayer(self._flights, SecondLookLayer(self._hot, RenewalLayer(claimed, statistics))),
        )
        self._renewal = BackgroundRenewal(definition.name, renewal.renew, statistics.thread_failed, settings.waiting)
        self._layers = self._layers_over(claimed, cold, settings)
        self._feed = FeedIntake(self._guarded, self._cold, writer, statistics)
        if redis_url is not None and self._cold is not None:
            client = open_redis(redis_url, settings.redis_timeout_ms)
            self._listener = Listener(
                client, self._cold.space.channel, self._heard, self._distrust, statistics.thread_failed
            )
            self._listener.wait(_FIRST_SUBSCRIPTION_S)

    def _layers_over(self, claimed: ClaimedKeys, cold: TolerantColdTier, settings: CacheSettings) -> Lookup:
        statistics, hot, flights, renew = self._statistics, self._hot, self._flights, self._renewal.ask
        below_flight = stacked(
            lambda below: ColdLayer(cold, self._guarded, statistics, below),
            lambda below: KeptLayer(hot, settings, below),
            lambda below: StaleLayer(settings, statistics, renew, below),
            lambda below: OnErrorLayer(settings, statistics, below),
            lambda below: SingleFlightLayer(flights, below),
            lambda below: SecondLookLayer(hot, below),
            lowest=KeyLockLayer(claimed, settings, statistics),
        )
        flight = FlightLayer(flights, statistics, below_flight)
        return MeteredLookup(statistics, HotLayer(hot, statistics, renew, flight))

    def lookup(self, keys: Sequence[Key], now_ms: int) -> list[Rows]:
        """The rows under distinct keys. Raises what ``on_error`` says if the source does not answer."""
        return self._layers.lookup(keys, now_ms)

    def invalidate(self, keys: Sequence[Key] | None = None, prefix: str | None = None, token: str = "") -> int:
        """Forgets entries here, in Redis, and in every other worker that can be reached; how many were held.

        If Redis does not answer, this process forgets its own, does the rest before it uses Redis again, and raises
        ServiceUnavailable: the other processes go on with what they hold, and it may be forever that this one is gone.
        """
        if not self._refreshes.is_new(token):
            return 0
        invalidation = Invalidation(None if keys is None else tuple(keys), prefix, token)
        self._statistics.count(invalidations=1)
        gone = 0
        try:
            if self._cold is not None:
                gone = self._cold.invalidations.execute(invalidation)
        except ServiceUnavailable as error:
            self._statistics.failed(error)
            self._refreshes.forget(token)
            raise
        finally:
            # After Redis, so that nothing old can come from there once the hot tier is clean.
            held = self._guarded.drop(invalidation)
        return max(gone, held)

    def misses(self, keys: Sequence[Key], now_ms: int) -> Mapping[Key, tuple[int, int]]:
        """In the memory of this process, and where that holds nothing in Redis."""
        held = self._hot.kept(keys)
        others = [key for key in keys if key not in held]
        if others and self._cold is not None:
            held |= self._cold.entries.read(others)
        return misses_of(held, now_ms)

    def feed_positions(self, feed: str) -> Mapping[int, int]:
        return self._feed.positions(feed)

    def begin_feed(self, feed: str, positions: Mapping[int, int]) -> None:
        self._feed.begin(feed, positions)

    def apply_feed(self, feed: str, partition: int, changes: SourceChanges, now_ms: int) -> None:
        self._feed.apply(feed, partition, changes, now_ms)

    def statistics(self) -> Mapping[str, Any]:
        """Of this process; ``element_count`` and the bytes are those of the hot tier."""
        hot = self._hot
        return self._statistics.report(
            element_count=len(hot),
            bytes_allocated=hot.bytes,
            load_factor=len(hot) / hot.max_keys,
            evictions=hot.evictions,
            is_listening=self._listener is not None and self._listener.is_listening,
            threads_failing=sum(not thread.is_healthy for thread in self._threads()),
        )

    def _threads(self) -> Iterator[SupervisedThread]:
        yield self._renewal.thread
        if self._listener is not None:
            yield self._listener.thread
        if self._cold is not None:
            yield self._cold.locks.keeper.thread

    def close(self) -> None:
        self._renewal.close()
        if self._listener is not None:
            self._listener.close()
        if self._cold is not None:
            self._cold.close()
        if self._local is not None:
            self._local.close()
        self._fetcher.close()

    def _hears(self) -> bool:
        """Whether this process hears all invalidations of others."""
        return self._cold is None or (self._listener is not None and self._listener.is_listening)

    def _heard(self, message: InvalidationMessage) -> None:
        """Another worker has executed an invalidation."""
        if self._cold is None or message.origin == self._cold.space.origin:
            return
        if message.invalidation.is_whole:
            self._cold.space.forget_version()
        self._guarded.drop(message.invalidation)
        self._refreshes.is_new(message.invalidation.token)

    def _distrust(self) -> None:
        """Invalidations may have been missed: nothing that is held here can be trusted."""
        if self._guarded.drop(Invalidation()):
            self._statistics.count(dropped_untrusted=1)
