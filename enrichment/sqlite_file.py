"""SQLite files that are copies of topics: fast, bounded in memory, made anew when they are damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CACHE_KIB = 16_384
_WAIT_S = 60


def connect(path: str | Path) -> sqlite3.Connection:
    """A connection that any one thread at a time may use; transactions are begun and ended by statements.

    After a loss of power the file is as it was after some earlier transaction: the topic has the rest.
    """
    connection = sqlite3.connect(str(path), isolation_level=None, check_same_thread=False, timeout=_WAIT_S)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    return connection


@contextmanager
def write_transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction that writes: what the block does is done as a whole, or, if it raises, not at all."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def open_or_replace(path: str | Path) -> sqlite3.Connection:
    """As ``connect``; a file that is no database is replaced by an empty one, and its folder is made."""
    if str(path) != ":memory:":
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    try:
        connection = connect(path)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError:
        for suffix in ("", "-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        connection = connect(path)
    return connection
