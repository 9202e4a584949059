"""From the rows of a statement to entries with their expiry and their bytes."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dovetail.changelog.lookup import Key, Rows
from dovetail.dictionaries.cache.cache_entry import CacheEntry
from dovetail.dictionaries.cache.cache_settings import CacheSettings
from dovetail.dictionaries.cache.cold.cold_entries import EncodedEntry
from dovetail.dictionaries.cache.cold.entry_codec import EntryCodec
from dovetail.dictionaries.cache.layout_statistics import Statistics


@dataclass
class Written:
    """What the tiers store: ``entries`` the hot one, ``values`` the cold one."""

    entries: dict[Key, CacheEntry] = field(default_factory=dict)
    values: dict[Key, EncodedEntry] = field(default_factory=dict)


class EntryWriter:
    """Makes entries of what the source gave at a moment."""

    def __init__(self, codec: EntryCodec, settings: CacheSettings, statistics: Statistics) -> None:
        self._codec = codec
        self._settings = settings
        self._statistics = statistics

    def write(self, keys: Sequence[Key], found: Mapping[Key, Rows], now_ms: int) -> Written:
        """Entries for all keys; one that is not ``found`` is known to be absent."""
        written = Written()
        absent = [key for key in keys if key not in found]
        if found:
            self._write(written, found, now_ms, self._settings.ttl_ms)
        if absent and self._settings.negative_ttl_ms:
            self._write(written, dict.fromkeys(absent, ()), now_ms, self._settings.negative_ttl_ms)
            self._statistics.count(negative_stored=len(absent))
        elif absent:
            written.values.update(dict.fromkeys(absent, (b"", 0)))
        return written

    def _write(self, written: Written, rows: Mapping[Key, Rows], now_ms: int, ttl_ms: int) -> None:
        life_ms = max(1, round(ttl_ms * (1 - self._settings.jitter * random.random())))
        expires_ms = now_ms + life_ms
        kept_ms = life_ms + self._settings.keep_ms
        most = self._settings.max_value_bytes
        oversize = 0
        encoded = self._codec.encode(list(rows.values()), now_ms, expires_ms)
        for (key, answer), value in zip(rows.items(), encoded, strict=True):
            if value is None or len(value) > most:
                oversize += 1
                written.values[key] = (b"", 0)
                continue
            written.values[key] = (value, kept_ms)
            written.entries[key] = CacheEntry(answer, now_ms, expires_ms, len(value))
        if oversize:
            self._statistics.count(oversize=oversize)
