"""A number in the catalog that grows with each wish of a user, so that who looks after queries looks at once.

SQLite keeps a number for its users in the head of its file (``PRAGMA user_version``), which belongs to the transaction
that writes it and takes microseconds to read. Other databases are asked as often as before.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress

from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DatabaseError
from sqlalchemy.pool import PoolProxiedConnection, StaticPool

_GREATEST = (1 << 31) - 1


class Wishes:
    """Reads the number over a connection of its own, for one thread."""

    def __init__(self, engine: Engine) -> None:
        # A catalog in memory has one connection, which belongs to transactions.
        self._engine = engine if engine.dialect.name == "sqlite" and not isinstance(engine.pool, StaticPool) else None
        self._connection: PoolProxiedConnection | None = None

    def count(self) -> int | None:
        """None where there is no such number, or the file cannot be read now."""
        if self._engine is None:
            return None
        with suppress(DatabaseError, sqlite3.Error, OSError):
            if self._connection is None:
                self._connection = self._engine.raw_connection()
            with closing(self._connection.cursor()) as cursor:
                cursor.execute("PRAGMA user_version")
                return int(cursor.fetchall()[0][0])
        return None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def add(connection: Connection) -> None:
    """To be called in the transaction of the wish."""
    if connection.dialect.name == "sqlite":
        before = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
        connection.exec_driver_sql(f"PRAGMA user_version = {before % _GREATEST + 1}")
