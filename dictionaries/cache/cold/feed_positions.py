"""Up to where the feed of a dictionary is in the entries of Redis; both change together."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from dovetail.changelog.lookup import Key
from dovetail.dictionaries.cache.cold.cold_entries import EncodedEntry
from dovetail.dictionaries.cache.cold.cold_invalidations import ColdInvalidations
from dovetail.dictionaries.cache.cold.invalidation_messages import encode_message
from dovetail.dictionaries.cache.cold.redis_scripts import BEGIN_FEED, FEED
from dovetail.dictionaries.cache.cold.redis_space import KEYS_PER_SCRIPT, RedisSpace
from dovetail.dictionaries.cache.invalidation import Invalidation

LOST = -2
FEED_KEYS = KEYS_PER_SCRIPT
"""So many keys a ``FeedPiece`` has at most."""


@dataclass(frozen=True)
class FeedPiece:
    """Changes of a partition of a feed between two offsets. ``seen``: a position that stood here once; ``values``:
    the entries of the changed keys, ``b''`` for one that is forgotten.
    """

    feed: str
    partition: int
    seen: int
    start: int
    end: int
    values: Mapping[Key, EncodedEntry]


class FeedPositions:
    """Thread-safe. Every call raises ServiceUnavailable if Redis does not answer."""

    def __init__(self, space: RedisSpace, invalidations: ColdInvalidations) -> None:
        self._space = space
        self._invalidations = invalidations

    def read(self, feed: str) -> dict[int, int]:
        """Up to where each partition of a feed is in the entries; empty: not known."""
        name = self._space.feed_name(feed)
        found: dict[bytes, bytes] = self._invalidations.before(lambda: self._space.command("HGETALL", name))
        return {int(partition): int(position) for partition, position in found.items()}

    def begin(self, feed: str, positions: Mapping[int, int]) -> None:
        """Forgets all entries for all workers: what is stored from now on has the feed up to these positions."""
        self._invalidations.before(lambda: self._begin(feed, positions))

    def apply(self, piece: FeedPiece) -> int:
        """The position of the partition afterwards. If it is not the end of the piece, nothing was done: beyond the
        start, other workers are further; ``LOST``, nobody knows what the entries lack.
        """
        return self._invalidations.before(lambda: self._apply(piece))

    def _begin(self, feed: str, positions: Mapping[int, int]) -> None:
        version, message = secrets.token_hex(8), encode_message(Invalidation(), self._space.origin)
        fields = [field for place in positions.items() for field in place]
        names = self._space.version_name, self._space.feed_name(feed)
        self._space.adopt_version(
            self._space.command("EVAL", BEGIN_FEED, 2, *names, version, self._space.channel, message, *fields)
        )

    def _apply(self, piece: FeedPiece) -> int:
        keys = list(piece.values)
        message = encode_message(Invalidation(tuple(keys)), self._space.origin)
        fields = [field for value in piece.values.values() for field in value]
        place = [piece.partition, piece.seen, piece.start, piece.end]
        arguments = [*place, self._space.channel, message, *fields]
        return self._space.run(FEED, keys, arguments, self._space.feed_name(piece.feed))
