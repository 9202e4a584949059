"""The file of the registry: SQLite, written through before an answer is given.

schemas   an id for each text; it is never given to another one, nor taken from it, since records carry it forever
versions  of a subject: which schema; ``deleted`` ones are hidden, and found by who asks for them
levels    compatibility by subject; that of '' is everybody's
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from dovetail.broker.registry.registered import Reference, SchemaText, SchemaType
from dovetail.changelog.work.sqlite_file import write_ahead

_TABLES = """
CREATE TABLE IF NOT EXISTS schemas (
    id INTEGER PRIMARY KEY AUTOINCREMENT, type TEXT NOT NULL, text TEXT NOT NULL, refs TEXT NOT NULL,
    UNIQUE (type, text, refs)
);
CREATE TABLE IF NOT EXISTS versions (
    subject TEXT NOT NULL, version INTEGER NOT NULL, schema_id INTEGER NOT NULL REFERENCES schemas (id),
    deleted INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (subject, version)
);
CREATE TABLE IF NOT EXISTS levels (subject TEXT PRIMARY KEY, level TEXT NOT NULL);
"""
_BUSY_S = 10


@dataclass(frozen=True)
class Version:
    """One version of a subject."""

    subject: str
    version: int
    schema_id: int
    deleted: bool


class SchemaStore:
    """What stands in the file. One connection, one thread at a time; ``changing`` makes several steps one."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # SQLite gives the files that it puts beside this one the same mode.
        path.touch(0o600)
        path.chmod(0o600)
        self.path = path
        self._lock = threading.RLock()
        self._file = sqlite3.connect(path, timeout=_BUSY_S, check_same_thread=False, isolation_level=None)
        write_ahead(self._file)
        self._file.execute("PRAGMA synchronous = FULL")
        self._file.executescript(_TABLES)

    def close(self) -> None:
        with self._lock:
            self._file.close()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """All that is done inside stands, or none of it."""
        with self._lock:
            self._file.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._file.execute("ROLLBACK")
                raise
            self._file.execute("COMMIT")

    def schema(self, schema_id: int) -> SchemaText | None:
        found = self._rows("SELECT type, text, refs FROM schemas WHERE id = ?", schema_id)
        if not found:
            return None
        kind, text, refs = found[0]
        references = tuple(Reference(*one) for one in orjson.loads(refs))
        return SchemaText(SchemaType(kind), text, references)

    def id_of(self, schema: SchemaText) -> int | None:
        found = self._rows("SELECT id FROM schemas WHERE type = ? AND text = ? AND refs = ?", *_columns(schema))
        return int(found[0][0]) if found else None

    def add_schema(self, schema: SchemaText) -> int:
        """Its id, a new one where it has none."""
        self._rows("INSERT OR IGNORE INTO schemas (type, text, refs) VALUES (?, ?, ?)", *_columns(schema))
        found = self.id_of(schema)
        assert found is not None
        return found

    def versions(self, subject: str) -> list[Version]:
        """In order, deleted ones among them."""
        rows = self._rows("SELECT * FROM versions WHERE subject = ? ORDER BY version", subject)
        return [_version(row) for row in rows]

    def all_versions(self) -> list[Version]:
        return [_version(row) for row in self._rows("SELECT * FROM versions ORDER BY subject, version")]

    def add_version(self, version: Version) -> None:
        """Also where it was deleted: it is there again."""
        row = (version.subject, version.version, version.schema_id, int(version.deleted))
        self._rows("INSERT OR REPLACE INTO versions VALUES (?, ?, ?, ?)", *row)

    def forget_version(self, version: Version) -> None:
        self._rows("DELETE FROM versions WHERE subject = ? AND version = ?", version.subject, version.version)

    def level(self, subject: str) -> str | None:
        found = self._rows("SELECT level FROM levels WHERE subject = ?", subject)
        return str(found[0][0]) if found else None

    def set_level(self, subject: str, level: str | None) -> None:
        if level is None:
            self._rows("DELETE FROM levels WHERE subject = ?", subject)
        else:
            self._rows("INSERT OR REPLACE INTO levels VALUES (?, ?)", subject, level)

    def _rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._file.execute(statement, values).fetchall()


def _columns(schema: SchemaText) -> tuple[str, str, str]:
    refs = orjson.dumps([[one.name, one.subject, one.version] for one in schema.references]).decode()
    return schema.type.value, schema.text, refs


def _version(row: tuple[Any, ...]) -> Version:
    subject, version, schema_id, deleted = row
    return Version(subject, version, schema_id, bool(deleted))
