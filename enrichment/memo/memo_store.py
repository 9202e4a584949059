"""The memo on local disk: a copy of its changelog topic that a restart need not read from its beginning."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

from dovetail.enrichment.sqlite_file import open_or_replace, write_transaction

Update = tuple[bytes, bytes | None]
"""A record of the memo's topic: a ``record_key`` and a run of what was emitted for it; None: forgotten."""

_VERSION = "2"
_KEYS_PER_QUERY = 128


def record_key(identity: bytes, number: int) -> bytes:
    """The key of a run in the memo's topic: the identity, and behind a NUL, which no JSON has, a number above 0."""
    return identity if number == 0 else b"%b\0%d" % (identity, number)


def identity_and_number(key: bytes) -> tuple[bytes, int]:
    identity, _, number = key.partition(b"\0")
    return identity, int(number or 0)


class MemoStore:
    """Runs of what was emitted, by identity and number, in SQLite. ``offset``: the topic's records below it are in.

    path         of the file, made where there is none; ':memory:' for tests
    fingerprint  of the query; a file of another one is emptied

    Thread-safe. Memory is bounded by SQLite's page cache.
    """

    def __init__(self, path: str | Path, fingerprint: str = "") -> None:
        self._lock = threading.Lock()
        self._connection = open_or_replace(path)
        self._connection.execute("CREATE TABLE IF NOT EXISTS meta (name PRIMARY KEY, value) WITHOUT ROWID")
        if self._version() != _VERSION:
            self._connection.execute("DROP TABLE IF EXISTS memo")
        for statement in _TABLES:
            self._connection.execute(statement)
        if self._meta("fingerprint") != f"{_VERSION}:{fingerprint}":
            self.clear()
            self._set_meta("fingerprint", f"{_VERSION}:{fingerprint}")

    @property
    def offset(self) -> int:
        """The offset of the topic from which a restore goes on."""
        with self._lock:
            return int(self._meta("offset") or 0)

    def older(self, before_ms: int, most: int = 2_000) -> list[bytes]:
        """Keys of some records that were last written before a moment, the oldest first."""
        with self._lock:
            found = self._connection.execute(
                "SELECT identity, number FROM memo WHERE written_ms < ? ORDER BY written_ms LIMIT ?", (before_ms, most)
            ).fetchall()
        return [record_key(identity, number) for identity, number in found]

    def runs(self, identities: Sequence[bytes]) -> dict[bytes, dict[int, bytes]]:
        """What is held of some distinct ``identities``, by number."""
        found: dict[bytes, dict[int, bytes]] = {}
        with self._lock:
            for start in range(0, len(identities), _KEYS_PER_QUERY):
                # Always as many parameters: one statement, prepared once. NULL equals nothing.
                queried = [*identities[start : start + _KEYS_PER_QUERY]]
                padded = [*queried, *[None] * (_KEYS_PER_QUERY - len(queried))]
                for identity, number, run in self._connection.execute(_GET, padded):
                    found.setdefault(identity, {})[number] = run
        return found

    def apply(self, updates: Iterable[Update], offset: int | None = None, written_ms: int = 0) -> None:
        """Take ``updates`` in, the last one of a key counting, and move to ``offset``, all or nothing."""
        last = dict(updates)
        kept = [(*identity_and_number(key), run, written_ms) for key, run in last.items() if run is not None]
        forgotten = [identity_and_number(key) for key, run in last.items() if run is None]
        with self._lock, write_transaction(self._connection):
            self._connection.executemany("REPLACE INTO memo VALUES (?, ?, ?, ?)", kept)
            self._connection.executemany("DELETE FROM memo WHERE identity = ? AND number = ?", forgotten)
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

    def _version(self) -> str:
        return (self._meta("fingerprint") or "").partition(":")[0]

    def _meta(self, name: str) -> str | None:
        row = self._connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def _set_meta(self, name: str, value: str) -> None:
        self._connection.execute("REPLACE INTO meta VALUES (?, ?)", (name, value))


def runs_in(path: Path) -> int:
    """How many runs a file holds, asked beside whoever writes it; 0 for one that is just being made, or is damaged."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            (held,) = connection.execute("SELECT count(*) FROM memo").fetchone()
            return int(held)
    except sqlite3.DatabaseError:
        return 0


_TABLES = (
    "CREATE TABLE IF NOT EXISTS memo (identity, number, run, written_ms, PRIMARY KEY (identity, number)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS by_age ON memo (written_ms)",
)
_GET = f"SELECT identity, number, run FROM memo WHERE identity IN ({', '.join('?' * _KEYS_PER_QUERY)})"
