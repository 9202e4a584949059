"""Taking the feed of a dictionary into its two tiers.

Every process reads the whole feed, and for the hot tier of each this is enough. Redis is changed by the first that
comes to a record: the position up to which the feed is in Redis stands beside the entries, and moves together with
them. So a process that is behind cannot put an older row in the place of a newer one, a process that starts goes on
where the entries end, and when Redis loses or restores its content, the position goes with it.

    entries and position in Redis ──▶ 100      what a process has read          what it may do in Redis
                                               80 .. 90                         nothing, others have done it
                                               95 .. 110                        the changes from 100 on
                                               position seen at 120 before      drop all: Redis was set back
"""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.changelog.errors import ServiceUnavailable
from dovetail.changelog.lookup import Key
from dovetail.dictionaries.cache.cold.cold_entries import EncodedEntry
from dovetail.dictionaries.cache.cold.cold_tier import ColdTier
from dovetail.dictionaries.cache.cold.feed_positions import FEED_KEYS, LOST, FeedPiece
from dovetail.dictionaries.cache.filling.entry_writer import EntryWriter
from dovetail.dictionaries.cache.hot.guarded_hot import GuardedHot
from dovetail.dictionaries.cache.invalidation import Invalidation
from dovetail.dictionaries.cache.layout_statistics import Statistics
from dovetail.dictionaries.feed.source_changes import SourceChanges


class FeedIntake:
    """Called by one thread. Without Redis, or while it does not answer, the hot tier alone is kept fresh; what Redis
    could not be told is kept by ``ColdInvalidations``, and done before anything is read there.
    """

    def __init__(self, guarded: GuardedHot, cold: ColdTier | None, writer: EntryWriter, statistics: Statistics) -> None:
        self._guarded = guarded
        self._cold = cold
        self._writer = writer
        self._statistics = statistics
        self._positions: dict[int, int] = {}

    def positions(self, feed: str) -> Mapping[int, int]:
        self._positions = {}
        if self._cold is not None:
            try:
                self._positions = self._cold.feed.read(feed)
            except ServiceUnavailable as error:
                self._statistics.failed(error)
        return dict(self._positions)

    def begin(self, feed: str, positions: Mapping[int, int]) -> None:
        self._positions = dict(positions)
        if self._cold is not None:
            try:
                self._cold.feed.begin(feed, positions)
            except ServiceUnavailable as error:
                self._statistics.failed(error)
                self._execute_later(Invalidation())
        self._guarded.drop(Invalidation())

    def apply(self, feed: str, partition: int, changes: SourceChanges, now_ms: int) -> None:
        stored = {key: rows for key, (_, rows) in changes.by_key.items() if rows is not None}
        self._statistics.count(
            feed_records=changes.records,
            feed_rejected=changes.rejected,
            feed_stored=len(stored),
            feed_invalidated=len(changes.by_key) - len(stored),
        )
        if changes.is_whole:
            self.begin(feed, self._positions | {partition: changes.end})
            return
        written = self._writer.write(list(stored), {key: rows for key, rows in stored.items() if rows}, now_ms)
        if self._cold is not None:
            values = {key: written.values.get(key, (b"", 0)) for key in changes.by_key}
            self._into_redis(self._cold, feed, partition, changes, values)
        # After Redis, so that nothing old can come from there once the hot tier is clean.
        self._guarded.drop(Invalidation(tuple(changes.by_key)))
        if self._cold is None:
            self._guarded.replace(written.entries, written.values, now_ms)

    def _into_redis(
        self, cold: ColdTier, feed: str, partition: int, changes: SourceChanges, values: Mapping[Key, EncodedEntry]
    ) -> None:
        offsets = [(key, change.offset) for key, change in changes.by_key.items()]
        start = changes.start
        try:
            while start < changes.end:
                left = [(key, offset) for key, offset in offsets if offset >= start]
                chosen = left[:FEED_KEYS]
                # A key that changed again later is in a later piece: the position may pass its earlier change.
                end = changes.end if len(left) == len(chosen) else chosen[-1][1] + 1
                chosen += [(key, offset) for key, offset in left[FEED_KEYS:] if offset < end]
                piece = {key: values[key] for key, _ in chosen}
                stands = cold.feed.apply(
                    FeedPiece(feed, partition, self._positions.get(partition, 0), start, end, piece)
                )
                if stands == LOST:
                    self.begin(feed, self._positions | {partition: changes.end})
                    return
                self._positions[partition] = start = stands
        except ServiceUnavailable as error:
            self._statistics.failed(error)
            self._execute_later(Invalidation(tuple(key for key, _ in offsets)))

    def _execute_later(self, invalidation: Invalidation) -> None:
        """Once Redis answers, before it is read."""
        assert self._cold is not None
        try:
            self._cold.invalidations.execute(invalidation)
        except ServiceUnavailable as error:
            self._statistics.failed(error)
