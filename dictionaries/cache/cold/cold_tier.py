"""The cold tier: entries in Redis, shared by all workers."""

from __future__ import annotations

from dovetail.dictionaries.cache.cold.cold_entries import ColdEntries
from dovetail.dictionaries.cache.cold.cold_invalidations import ColdInvalidations
from dovetail.dictionaries.cache.cold.entry_codec import EntryCodec
from dovetail.dictionaries.cache.cold.feed_positions import FeedPositions
from dovetail.dictionaries.cache.cold.key_locks import KeyLocks
from dovetail.dictionaries.cache.cold.redis_space import RedisSpace


class ColdTier:
    """What one dictionary does in Redis, by idea. Thread-safe; every call raises ServiceUnavailable without Redis.

    space          names, version, connection
    entries        what is read
    locks          who asks the source for a key, and stores what it gives
    invalidations  what is forgotten, for all workers
    feed           changes at the source, and up to where they are in
    """

    def __init__(self, space: RedisSpace, codec: EntryCodec) -> None:
        self.space = space
        self.invalidations = ColdInvalidations(space)
        self.entries = ColdEntries(space, self.invalidations, codec)
        self.locks = KeyLocks(space, self.invalidations, codec)
        self.feed = FeedPositions(space, self.invalidations)

    def close(self) -> None:
        self.locks.close()
        self.space.close()
