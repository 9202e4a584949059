"""Entries in a local file: what a process without Redis keeps beyond its hot tier."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock

import structlog

from dovetail.changelog.lookup import Key
from dovetail.dictionaries.cache.cache_entry import CacheEntry
from dovetail.dictionaries.cache.cold.cold_entries import EncodedEntry
from dovetail.dictionaries.cache.cold.entry_codec import EntryCodec
from dovetail.dictionaries.cache.cold.entry_names import entry_names, text_in_name
from dovetail.dictionaries.cache.invalidation import Invalidation

_NAMES_PER_QUERY = 500
_SWEPT_EVERY_MS = 60_000
_PRAGMAS = ("journal_mode = OFF", "synchronous = OFF", "locking_mode = EXCLUSIVE", "cache_size = -16384")

_log = structlog.get_logger(__name__)


class LocalEntries:
    """All keys until their TTL, in a SQLite file of one process. Thread-safe.

    Begun anew by each process: a refresh, or a change in a feed, that came while none ran is known to nobody. What the
    disk refuses ends the use of the file, and is no error of a lookup.
    """

    def __init__(self, path: Path, codec: EntryCodec) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        self._path = path
        self._codec = codec
        self._lock = Lock()
        self._swept_ms = 0
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        for pragma in _PRAGMAS:
            self._connection.execute(f"PRAGMA {pragma}")
        self._connection.execute("CREATE TABLE entries (name PRIMARY KEY, value, gone_ms) WITHOUT ROWID")
        self._connection.execute("CREATE INDEX by_end ON entries (gone_ms)")
        self.is_broken = False

    def read(self, keys: Sequence[Key]) -> dict[Key, CacheEntry]:
        """The entries held, expired ones as well."""
        names = entry_names("", keys)
        values: dict[str, bytes] = {}
        with self._lock:
            if self.is_broken:
                return {}
            try:
                for at in range(0, len(names), _NAMES_PER_QUERY):
                    part = names[at : at + _NAMES_PER_QUERY]
                    marks = ", ".join("?" * len(part))
                    values.update(
                        self._connection.execute(f"SELECT name, value FROM entries WHERE name IN ({marks})", part)
                    )
            except sqlite3.Error as error:
                self._break(error)
                return {}
        held = [(key, values[name]) for key, name in zip(keys, names, strict=True) if name in values]
        decoded = self._codec.decode([value for _, value in held])
        return {key: entry for (key, _), entry in zip(held, decoded, strict=True) if entry is not None}

    def store(self, values: Mapping[Key, EncodedEntry], now_ms: int) -> None:
        """``b''`` as a value: nothing is kept of the key."""
        names = entry_names("", list(values))
        named = list(zip(names, values.values(), strict=True))
        kept = [(name, value, now_ms + kept_ms) for name, (value, kept_ms) in named if value]
        gone = [(name,) for name, (value, _) in named if not value]
        with self._lock:
            if self.is_broken:
                return
            try:
                self._write(kept, gone, now_ms)
            except sqlite3.Error as error:
                self._break(error)

    def drop(self, invalidation: Invalidation) -> int:
        """How many entries went."""
        with self._lock:
            if self.is_broken:
                return 0
            try:
                return self._drop(invalidation)
            except sqlite3.Error as error:
                self._break(error)
                return 0

    def close(self) -> None:
        with self._lock:
            self.is_broken = True
            self._connection.close()
        self._path.unlink(missing_ok=True)

    def _write(self, kept: Sequence[tuple[str, bytes, int]], gone: Sequence[tuple[str]], now_ms: int) -> None:
        self._connection.execute("BEGIN")
        self._connection.executemany("REPLACE INTO entries VALUES (?, ?, ?)", kept)
        self._connection.executemany("DELETE FROM entries WHERE name = ?", gone)
        if now_ms - self._swept_ms >= _SWEPT_EVERY_MS:
            self._connection.execute("DELETE FROM entries WHERE gone_ms <= ?", (now_ms,))
            self._swept_ms = now_ms
        self._connection.execute("COMMIT")

    def _drop(self, invalidation: Invalidation) -> int:
        if invalidation.is_whole:
            return self._connection.execute("DELETE FROM entries").rowcount
        names = set(entry_names("", list(invalidation.keys or ())))
        prefix = invalidation.prefix
        if prefix is not None:
            there = self._connection.execute("SELECT name FROM entries")
            names.update(name for (name,) in there if text_in_name(name).startswith(prefix))
        deleted = self._connection.executemany("DELETE FROM entries WHERE name = ?", [(name,) for name in names])
        return max(0, deleted.rowcount)

    def _break(self, error: sqlite3.Error) -> None:
        self.is_broken = True
        _log.warning("dictionary.local_tier_lost", path=str(self._path), error=str(error))
