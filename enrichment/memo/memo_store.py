"""The memo on local disk: a copy of its changelog topic that a restart need not read from its beginning."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

from enrichment.sqlite_file import open_or_replace, write_transaction

Update = tuple[bytes, bytes | None]
"""A record of the memo's topic: an identity and what was emitted for it; None: forgotten."""

_VERSION = "1"
_KEYS_PER_QUERY = 128


class MemoStore:
    """Identity to what was emitted for it, in SQLite, with ``offset``: the topic's records below it are in.

    path         of the file, made where there is none; ':memory:' for tests
    fingerprint  of the query; a file of another one is emptied

    Thread-safe. Memory is bounded by SQLite's page cache.
    """

    def __init__(self, path: str | Path, fingerprint: str = "") -> None:
        self._lock = threading.Lock()
        self._connection = open_or_replace(path)
        self._connection.execute("CREATE TABLE IF NOT EXISTS memo (identity PRIMARY KEY, emitted) WITHOUT ROWID")
        self._connection.execute("CREATE TABLE IF NOT EXISTS meta (name PRIMARY KEY, value) WITHOUT ROWID")
        if self._meta("fingerprint") != f"{_VERSION}:{fingerprint}":
            self.clear()
            self._set_meta("fingerprint", f"{_VERSION}:{fingerprint}")

    @property
    def offset(self) -> int:
        """The offset of the topic from which a restore goes on."""
        with self._lock:
            return int(self._meta("offset") or 0)

    def get(self, identities: Sequence[bytes]) -> dict[bytes, bytes]:
        """What is held of some distinct ``identities``."""
        found: dict[bytes, bytes] = {}
        with self._lock:
            for start in range(0, len(identities), _KEYS_PER_QUERY):
                # Always as many parameters: one statement, prepared once. NULL equals nothing.
                asked = [*identities[start : start + _KEYS_PER_QUERY]]
                padded = [*asked, *[None] * (_KEYS_PER_QUERY - len(asked))]
                found.update(self._connection.execute(_GET, padded))
        return found

    def apply(self, updates: Iterable[Update], offset: int | None = None) -> None:
        """Take ``updates`` in, the last one of an identity counting, and move to ``offset``, all or nothing."""
        last = dict(updates)
        kept = [(identity, emitted) for identity, emitted in last.items() if emitted is not None]
        forgotten = [(identity,) for identity, emitted in last.items() if emitted is None]
        with self._lock, write_transaction(self._connection):
            self._connection.executemany("REPLACE INTO memo VALUES (?, ?)", kept)
            self._connection.executemany("DELETE FROM memo WHERE identity = ?", forgotten)
            if offset is not None:
                self._set_meta("offset", str(offset))

    def clear(self) -> None:
        """Forget everything, the offset too."""
        with self._lock:
            self._connection.execute("DELETE FROM memo")
            self._connection.execute("DELETE FROM meta WHERE name = 'offset'")

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def _meta(self, name: str) -> str | None:
        row = self._connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def _set_meta(self, name: str, value: str) -> None:
        self._connection.execute("REPLACE INTO meta VALUES (?, ?)", (name, value))


_GET = f"SELECT identity, emitted FROM memo WHERE identity IN ({', '.join('?' * _KEYS_PER_QUERY)})"
