"""The hot tier: entries in the memory of the process."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from threading import Lock

from dovetail.changelog.lookup import Key, Rows
from dovetail.dictionaries.cache.cache_entry import CacheEntry
from dovetail.dictionaries.cache.hot.scan_resistant_fifo import ScanResistantFifo
from dovetail.dictionaries.cache.hot.timers import Timers
from dovetail.dictionaries.cache.key_text import key_text

ENTRY_BYTES = 600
"""What an entry is taken to cost besides ``CacheEntry.size``: dict slots, tuples, headers of objects. Three columns,
66 bytes in Redis: 570 were measured in all (tracemalloc), without the key's own text.
"""


class HotTier:
    """At most ``max_keys`` entries and ``max_bytes`` of memory; which ones, ``ScanResistantFifo`` decides.

    ``_fresh`` holds rows and nothing else, and only of entries that have not expired: so a batch is looked up by one
    comprehension, with no look at any clock. What expires is taken out when its moment comes, once for all keys.

    keep_ms   how long an expired entry is kept beside, for when the source does not answer
    ahead     in this last share of its life an entry is ``soon``: if asked for, it is worth a refresh; 0: never
    """

    def __init__(self, max_keys: int, max_bytes: int, keep_ms: int = 0, ahead: float = 0.0) -> None:
        self.max_keys = max_keys
        self._max_bytes = max_bytes
        self._keep_ms = keep_ms
        self._ahead = ahead
        self._fresh: dict[Key, Rows] = {}
        self._entries: dict[Key, CacheEntry] = {}
        self._soon: set[Key] = set()
        self._fifo = ScanResistantFifo(max_keys)
        self._timers = Timers()
        self._lock = Lock()
        self.bytes = 0
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._entries)

    def lookup(self, keys: Sequence[Key], now_ms: int) -> list[Rows | None]:
        """The rows under each key, ``()`` if known to be absent; None: not here."""
        if now_ms >= self._timers.next_ms:
            self._turn(now_ms)
        fresh = self._fresh
        found = list(map(fresh.get, keys))
        if None not in found:
            self._fifo.visited.update(keys)
        else:
            self._fifo.visited.update(fresh.keys() & keys)
        return found

    def soon(self, keys: Sequence[Key]) -> list[Key]:
        """Those of the keys that are near their expiry; each is told once."""
        if not self._soon:
            return []
        near = self._soon.intersection(keys)
        self._soon.difference_update(near)
        return list(near)

    def kept(self, keys: Sequence[Key]) -> dict[Key, CacheEntry]:
        """The entries of the keys, expired ones as well."""
        entries = self._entries
        return {key: entry for key in keys if (entry := entries.get(key)) is not None}

    def store(self, entries: Mapping[Key, CacheEntry], until_ms: float = math.inf) -> None:
        """Holds the entries, none of them longer than ``until_ms``."""
        if math.isfinite(until_ms):
            limit = int(until_ms)
            entries = {key: entry._replace(expires_ms=min(entry.expires_ms, limit)) for key, entry in entries.items()}
        with self._lock:
            self._store(entries)

    def drop(self, keys: Sequence[Key] | None = None, prefix: str | None = None) -> int:
        """Forgets some entries, or all; how many were held."""
        with self._lock:
            if keys is None and prefix is None:
                return self._clear()
            gone = list(keys) if keys is not None else []
            if prefix is not None:
                gone += [key for key in self._entries if key_text(key).startswith(prefix)]
            return self._forget(gone)

    def _store(self, entries: Mapping[Key, CacheEntry]) -> None:
        held = self._entries
        entered, left = self._fifo.admit([key for key in entries if key not in held])
        self._release_counted(left)
        replaced = held.keys() & entries.keys()
        gone = set(left)
        kept = {key: entries[key] for key in chain(entered, replaced) if key not in gone}
        self.bytes -= sum([ENTRY_BYTES + held[key].size for key in replaced])
        self._soon.difference_update(replaced)
        held.update(kept)
        self._fresh.update({key: entry.rows for key, entry in kept.items()})
        self.bytes += sum([ENTRY_BYTES + entry.size for entry in kept.values()])
        while self.bytes > self._max_bytes and len(self._fifo):
            self._release_counted(self._fifo.shrink(len(self._fifo) - max(1, len(self._fifo) // 64)))
        self._arm(kept)
        if self._timers.count > 4 * self.max_keys + 1024:
            self._timers.clear()
            self._arm(held)

    def _arm(self, entries: Mapping[Key, CacheEntry]) -> None:
        by_moment: defaultdict[int, list[Key]] = defaultdict(list)
        for key, entry in entries.items():
            by_moment[entry.soon_ms(self._ahead)].append(key)
        for moment_ms, keys in by_moment.items():
            self._timers.add(moment_ms, keys)

    def _turn(self, now_ms: int) -> None:
        """Takes the keys whose moment has come to their next state: fresh, soon, expired, forgotten."""
        with self._lock:
            again: dict[int, list[Key]] = defaultdict(list)
            gone = []
            for key in self._timers.due(now_ms):
                entry = self._entries.get(key)
                if entry is None:
                    continue
                if now_ms < entry.soon_ms(self._ahead):
                    again[entry.soon_ms(self._ahead)].append(key)  # replaced meanwhile
                elif now_ms < entry.expires_ms:
                    self._soon.add(key)
                    again[entry.expires_ms].append(key)
                elif now_ms < entry.expires_ms + self._keep_ms:
                    self._fresh.pop(key, None)
                    again[entry.expires_ms + self._keep_ms].append(key)
                else:
                    gone.append(key)
            for moment_ms, keys in again.items():
                self._timers.add(moment_ms, keys)
            self._forget(gone)

    def _forget(self, keys: Sequence[Key]) -> int:
        before = len(self._entries)
        self._fifo.remove(keys)
        self._release(keys)
        return before - len(self._entries)

    def _release(self, keys: Collection[Key]) -> None:
        """Takes out entries that the queues no longer hold."""
        for key in keys:
            entry = self._entries.pop(key, None)
            if entry is not None:
                self._fresh.pop(key, None)
                self.bytes -= ENTRY_BYTES + entry.size
        if self._soon:
            self._soon.difference_update(keys)

    def _release_counted(self, keys: Sequence[Key]) -> None:
        self.evictions += len(keys)
        self._release(keys)

    def _clear(self) -> int:
        held = len(self._entries)
        # A new dict: a lookup that is under way keeps reading the one it began with.
        self._fresh = {}
        self._entries.clear()
        self._soon.clear()
        self._fifo.clear()
        self._timers.clear()
        self.bytes = 0
        return held
