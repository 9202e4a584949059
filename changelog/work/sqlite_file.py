"""A SQLite file that several processes and threads use at once."""

from __future__ import annotations

import sqlite3

_MOST_TRIES = 1000
"""Of one connection; each is lost to another connection, which needs the file for a moment and once."""


def write_ahead(file: sqlite3.Connection) -> None:
    """Have the file keep a write-ahead log: whoever reads it never waits for whoever writes.

    SQLite waits for the locks of other connections as long as the ``busy_timeout`` of ``file`` says, except for this
    change: where two open a new file at once, it fails for one of them without waiting. A transaction of all the file
    does wait.

    :param file: in no transaction
    :raises sqlite3.OperationalError: others have kept the file for themselves for longer than the timeout
    """
    for tries_left in reversed(range(_MOST_TRIES)):
        try:
            file.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or not tries_left:
                raise
        else:
            return
        file.execute("BEGIN EXCLUSIVE")
        file.execute("COMMIT")
