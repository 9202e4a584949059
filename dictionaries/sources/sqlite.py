"""SQLite: a file, no server."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import ReflectedColumn

from dovetail.dictionaries.definition.definition import Definition
from dovetail.dictionaries.outside.outside import Outside
from dovetail.dictionaries.sources.sql_database import Refusal, SqlSource, reason

_READING = frozenset(
    {
        *(sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE),
        *(sqlite3.SQLITE_TRANSACTION, sqlite3.SQLITE_SAVEPOINT),
    }
)
_PRAGMAS = ("table_xinfo", "read_uncommitted", "data_version")
"""Of the check of the columns, of SQLAlchemy, and of the full text search."""
_INT64 = range(-(2**63), 2**63)


class SqliteSource(SqlSource):
    """SOURCE(SQLITE(PATH TABLE|QUERY ..)); a relative path begins at the folder of files that statements may name.

    SQLite has no types for decimals and times: a key of such a type is found where it is stored as text, as
    '1.50', '2024-05-01' and '2024-05-01 10:00:00'.
    """

    title = "SQLite"

    def __init__(self, definition: Definition, outside: Outside) -> None:
        self._path = str(definition.source.parameters["path"])
        super().__init__(definition, outside)

    @property
    def place(self) -> str:
        return f"SQLite file {self._path}"

    @property
    def url(self) -> sa.URL:
        """Of some file, which SQLAlchemy pools in a way of its own; ``connection`` names the real one."""
        return sa.URL.create("sqlite", database="file:source", query={"uri": "true"})

    def connect_arguments(self, timeout_s: float) -> Mapping[str, Any]:
        return {"timeout": timeout_s, "check_same_thread": False}

    def connection(self, keywords: Mapping[str, Any]) -> Any:
        place = self.outside.files.place(self._path, self.where)
        # mode=ro: a file that is not there must not be made.
        opened = sqlite3.connect(f"file:{quote(str(place))}?mode=ro", **keywords)
        opened.execute("PRAGMA trusted_schema = OFF")
        opened.set_authorizer(_authorized)
        return opened

    def secret(self) -> Mapping[str, str]:
        return {}

    def bound(self, value: Any) -> Any:
        if isinstance(value, bool) or (isinstance(value, int) and value in _INT64):
            return value
        if isinstance(value, int | Decimal | time):
            return str(value)
        if isinstance(value, datetime):
            return str(value.replace(tzinfo=None))
        return value.isoformat() if isinstance(value, date) else value

    def refusal(self, error: BaseException) -> Refusal | None:
        text = reason(error)
        if "unable to open" in text and not self.outside.files.place(self._path, self.where).exists():
            return Refusal(f"there is no file {self._path}", "create the database, or correct PATH")
        if "locked" in text or "busy" in text or "disk I/O" in text:
            return None
        if "no such table" in text:
            table = self.parameters.get("table", "")
            return Refusal(f'SQLite: there is no table "{table or text}"', "create it, or correct TABLE or QUERY")
        return Refusal(f"SQLite: {text}", "correct TABLE, QUERY or the columns of the dictionary")

    def reflected(self, connection: sa.Connection) -> list[ReflectedColumn]:
        found = connection.execute(
            sa.text('SELECT name, type, "notnull" FROM pragma_table_xinfo(:table)'), {"table": self.table_name}
        ).all()
        if not found:
            raise self.no_table()
        return [
            {"name": name, "type": _affinity(kind), "nullable": not not_null, "default": None}
            for name, kind, not_null in found
        ]

    def check_type(self, *_: Any) -> None:
        """Any column of SQLite may hold any value."""


def _authorized(action: int, first: str | None, second: str | None, *_: object) -> int:
    """What a TABLE or QUERY may do: read. No other file is attached, no library is loaded into the process."""
    if action == sqlite3.SQLITE_PRAGMA:
        return sqlite3.SQLITE_OK if first in _PRAGMAS else sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_UPDATE:
        # So SQLite asks when it declares a virtual table, such as that of a pragma; the file is read alone.
        return sqlite3.SQLITE_OK if first == "sqlite_master" else sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_FUNCTION and second == "load_extension":
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY


def _affinity(declared: str) -> sa.types.TypeEngine[Any]:
    """What a column declared so most likely holds; SQLite itself enforces nothing."""
    words = declared.upper()
    return next((kind for part, kind in _BY_PART if part in words), sa.String())


_BY_PART: tuple[tuple[str, sa.types.TypeEngine[Any]], ...] = (
    ("INT", sa.BigInteger()),
    ("BOOL", sa.Boolean()),
    ("DATETIME", sa.DateTime()),
    ("TIMESTAMP", sa.DateTime()),
    ("DATE", sa.Date()),
    ("BLOB", sa.LargeBinary()),
    ("BINARY", sa.LargeBinary()),
    ("REAL", sa.Double()),
    ("FLOA", sa.Double()),
    ("DOUB", sa.Double()),
)
