"""Locks of keys in Redis: of all workers that miss a key, one asks the source."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from dovetail.changelog.errors import ServiceUnavailable
from dovetail.changelog.lookup import Key
from dovetail.changelog.work.supervised_thread import PeriodicThread
from dovetail.dictionaries.cache.cache_entry import CacheEntry
from dovetail.dictionaries.cache.cold.cold_entries import EncodedEntry
from dovetail.dictionaries.cache.cold.cold_invalidations import ColdInvalidations
from dovetail.dictionaries.cache.cold.entry_codec import EntryCodec
from dovetail.dictionaries.cache.cold.redis_scripts import CLAIM, EXTEND, STORE
from dovetail.dictionaries.cache.cold.redis_space import KEYS_PER_SCRIPT, RedisSpace, count_of_parts

LOCK_MS = 3_000
"""A worker that dies while it asks holds the others up for so long."""
_EXTEND_EVERY_S = LOCK_MS / 3000


@dataclass(frozen=True)
class Lease:
    """The locks that a claim took; what is fetched under it may be stored."""

    token: str
    version: str
    sweep: str


@dataclass
class Claim:
    """What became of the keys: ``entries`` somebody else stored meanwhile, ``mine`` to ask for, ``busy`` asked for by
    another worker. ``lease`` None: nothing is locked, because Redis is not there; what is fetched is not shared.
    """

    lease: Lease | None
    entries: dict[Key, CacheEntry] = field(default_factory=dict)
    mine: list[Key] = field(default_factory=list)
    busy: list[Key] = field(default_factory=list)


class KeyLocks:
    """Thread-safe. Every call raises ServiceUnavailable if Redis does not answer."""

    def __init__(self, space: RedisSpace, invalidations: ColdInvalidations, codec: EntryCodec) -> None:
        self._space = space
        self._invalidations = invalidations
        self._codec = codec
        self.keeper = LeaseKeeper(self._extend, space.thread_failed)

    def claim(self, keys: Sequence[Key], now_ms: int, ahead: float = 0.0) -> Claim:
        """Locks the keys whose entry has expired, or is in the last share ``ahead`` of its life, unless another worker
        has locked them.
        """
        token = secrets.token_hex(8)
        return self._invalidations.before(
            lambda: self._space.with_version(lambda version: self._claim(version, token, keys, now_ms, ahead))
        )

    def kept(self, lease: Lease, keys: Sequence[Key]) -> AbstractContextManager[None]:
        """Within the block the keys stay locked, however long it takes."""
        return self.keeper.keeping(lease, keys)

    def store(self, lease: Lease, values: Mapping[Key, EncodedEntry]) -> None:
        """Stores encoded entries under their keys where the lease still holds. The keys are unlocked."""
        self._invalidations.before(lambda: self._store(lease, values))

    def release(self, lease: Lease, keys: Sequence[Key]) -> None:
        """Unlocks keys, so that others need not wait for what will not come."""
        self.store(lease, dict.fromkeys(keys, (b"", 0)))

    def close(self) -> None:
        self.keeper.close()

    def _claim(self, version: str, token: str, keys: Sequence[Key], now_ms: int, ahead: float) -> Claim | None:
        names = self._space.entry_names(version, keys)
        arguments = [version, token, LOCK_MS, now_ms + self._space.clock.offset_ms, ahead]
        answers = self._space.run_in_parts(CLAIM, names, [arguments] * count_of_parts(names))
        if None in answers:
            return None
        return self._claimed(Lease(token, version, answers[0][0].decode()), keys, names, answers)

    def _claimed(self, lease: Lease, keys: Sequence[Key], names: Sequence[str], answers: list[Any]) -> Claim:
        claim = Claim(lease)
        states = [state for answer in answers for state in answer[1:]]
        for key, name, state in zip(keys, names, states, strict=True):
            if state == 1:
                claim.mine.append(key)
            elif state == 0:
                claim.busy.append(key)
            else:
                [entry] = self._codec.decode([state])
                if entry is not None:
                    claim.entries[key] = entry
                else:
                    self._space.client.delete(name)
                    claim.mine.append(key)
        return claim

    def _store(self, lease: Lease, values: Mapping[Key, EncodedEntry]) -> None:
        names = self._space.entry_names(lease.version, list(values))
        fields = [field for value in values.values() for field in value]
        fixed = [lease.version, lease.sweep, lease.token]
        width = 2 * KEYS_PER_SCRIPT
        parts = [fixed + fields[at * width : (at + 1) * width] for at in range(count_of_parts(names))]
        self._space.run_in_parts(STORE, names, parts)

    def _extend(self, lease: Lease, keys: Sequence[Key]) -> None:
        names = self._space.entry_names(lease.version, keys)
        parts = [[lease.token, LOCK_MS]] * count_of_parts(names)
        self._invalidations.before(lambda: self._space.run_in_parts(EXTEND, names, parts))


class LeaseKeeper:
    """One thread that has the locks of all leases in use live on, every second.

    A lock as long as the slowest statement would hold the others up as long after a death; one that is short and not
    kept would be over before a slow statement is, and others would ask a source that is slow already once more.
    """

    def __init__(self, extend: Callable[[Lease, Sequence[Key]], None], failed: Callable[[BaseException], None]) -> None:
        self._extend = extend
        self._in_use: dict[Lease, Sequence[Key]] = {}
        self._lock = Lock()
        self.thread = PeriodicThread("keep leases", _EXTEND_EVERY_S, self._extend_all, failed)

    @contextmanager
    def keeping(self, lease: Lease, keys: Sequence[Key]) -> Iterator[None]:
        with self._lock:
            self._in_use[lease] = keys
            self.thread.start()
        try:
            yield
        finally:
            with self._lock:
                del self._in_use[lease]

    def close(self) -> None:
        self.thread.close()

    def _extend_all(self) -> None:
        with self._lock:
            in_use = list(self._in_use.items())
        with suppress(ServiceUnavailable):  # without Redis nobody sees a lock
            for lease, keys in in_use:
                self._extend(lease, keys)
