"""Entries in Redis, read many at a time."""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.changelog.lookup import Key
from dovetail.dictionaries.cache.cache_entry import CacheEntry
from dovetail.dictionaries.cache.cold.cold_invalidations import ColdInvalidations
from dovetail.dictionaries.cache.cold.entry_codec import EntryCodec
from dovetail.dictionaries.cache.cold.redis_space import RedisSpace

_MGET_KEYS = 4096

EncodedEntry = tuple[bytes, int]
"""An entry's bytes, and for how many ms Redis keeps them; ``b''``: it keeps nothing."""


class ColdEntries:
    """Thread-safe. Raises ServiceUnavailable if Redis does not answer. ``KeyLocks`` and ``FeedPositions`` store."""

    def __init__(self, space: RedisSpace, invalidations: ColdInvalidations, codec: EntryCodec) -> None:
        self._space = space
        self._invalidations = invalidations
        self._codec = codec

    def read(self, keys: Sequence[Key]) -> dict[Key, CacheEntry]:
        """The entries held, expired ones as well."""
        values = self._invalidations.before(lambda: self._space.with_version(lambda version: self._mget(version, keys)))
        decoded = self._codec.decode(values)
        return {key: entry for key, entry in zip(keys, decoded, strict=True) if entry is not None}

    def _mget(self, version: str, keys: Sequence[Key]) -> list[bytes | None] | None:
        """The values, if the version stands while they are read."""
        names = self._space.entry_names(version, keys)
        with self._space.client.pipeline(transaction=False) as pipeline:
            for at in range(0, len(names), _MGET_KEYS):
                pipeline.mget(self._space.version_name, *names[at : at + _MGET_KEYS])
            answers: list[list[bytes | None]] = pipeline.execute()
        if any(answer[0] != version.encode() for answer in answers):
            return None
        return [value for answer in answers for value in answer[1:]]
