"""How the rows of a stream stand in SQLite: tables, indexes, and the statements that change them.

rows      a column for each declared one, ``_tp_time`` and ``_tp_sn``, and those that are parts of the record
          keyed stream: by primary key, without rowid, so the primary key and its prefixes need no further index
          CHANGELOG: with the hash of the row as its key, and ``n``, how often it stands. That may be below 0 for a
          while, where partitions are read at different speeds; such rows are not seen
offsets   up to where each partition is read
meta      what the file was made for
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence

import pyarrow as pa

from dovetail.changelog.changes import DELTA
from dovetail.changelog.errors import InternalError
from dovetail.changelog.schema import SEQUENCE, TIME, Kind, StreamSchema
from dovetail.enrichment.sqlite_file import write_transaction
from dovetail.enrichment.stream_rows.rows_query import RowsQuery, StoredRow
from dovetail.enrichment.stream_rows.sqlite_values import sqlite_codec
from dovetail.sql.syntax.statements import Index

RESERVED = (TIME, SEQUENCE)
_VERSION = 1
_KEYED = (Kind.UPSERT, Kind.CHANGELOG_KV)


class RowsTables:
    """The statements for one stream."""

    def __init__(self, schema: StreamSchema, indexes: Sequence[Index]) -> None:
        self._schema = schema
        self._indexes = tuple(indexes)
        self._declared = tuple(column.name for column in schema.columns)
        parts = [(one.name, str(one.type), one.part.value, one.header) for one in schema.included]
        reserved = (name for name in RESERVED if name not in self._declared)
        self.columns = (*self._declared, *reserved, *(one.name for one in schema.included))
        self._codecs = [sqlite_codec(schema.types[name]) for name in self.columns]
        self._places = {name: place for place, name in enumerate(self.columns)}
        self._counted = schema.kind is Kind.CHANGELOG
        self._queries: dict[tuple[tuple[str, ...], tuple[str, ...]], RowsQuery] = {}
        declared = [(column.name, str(column.type)) for column in schema.columns]
        form = (_VERSION, schema.kind.value, schema.primary_key, declared, self._indexes)
        self.fingerprint = repr((*form, parts) if parts else form)

    def create(self, connection: sqlite3.Connection) -> None:
        """The tables, empty, in place of whatever there is."""
        with write_transaction(connection):
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                connection.execute(f'DROP TABLE "{name}"')
            for statement in self._definitions():
                connection.execute(statement)
            connection.execute("INSERT INTO meta VALUES ('fingerprint', ?)", (self.fingerprint,))

    def _definitions(self) -> Iterator[str]:
        columns = self._names(self.columns)
        key = self._names(self._schema.primary_key)
        yield "CREATE TABLE meta (name PRIMARY KEY, value) WITHOUT ROWID"
        yield "CREATE TABLE offsets (partition INTEGER PRIMARY KEY, next INTEGER NOT NULL)"
        if self._schema.kind in _KEYED:
            yield f"CREATE TABLE rows ({columns}, PRIMARY KEY ({key})) WITHOUT ROWID"
        elif self._counted:
            yield f"CREATE TABLE rows ({columns}, n INTEGER, hash BLOB PRIMARY KEY)"
            yield "CREATE INDEX gone ON rows (n) WHERE n = 0"
        else:
            yield f"CREATE TABLE rows ({columns})"
        if self._schema.kind not in _KEYED and key:
            yield f"CREATE INDEX by_key ON rows ({key})"
        for number, index in enumerate(self._indexes):
            covered = dict.fromkeys((*index.columns, *index.storing))
            yield f"CREATE INDEX by_{number} ON rows ({self._names(tuple(covered))})"

    def _names(self, names: Sequence[str]) -> str:
        """Columns are called by their places: a name of the user's never gets into a statement."""
        return ", ".join(f"c{self._place(name)}" for name in names)

    def _place(self, name: str) -> int:
        place = self._places.get(name)
        if place is None:
            raise InternalError(f"{self._schema.name} has no column {name}; it has {', '.join(self.columns)}")
        return place

    def take(self, connection: sqlite3.Connection, rows: pa.Table) -> int:
        """Take decoded rows in, in order; the number of dangling retractions."""
        stored = [code.column(rows.column(name)) for code, name in zip(self._codecs, self.columns, strict=True)]
        values = list(zip(*stored, strict=True))
        deltas = rows.column(DELTA).to_pylist()
        match self._schema.kind:
            case Kind.UPSERT:
                self._upsert(connection, values, deltas)
            case Kind.CHANGELOG_KV:
                return self._replace_or_delete(connection, values, deltas)
            case Kind.CHANGELOG:
                self._count(connection, values, deltas)
            case Kind.APPEND:
                connection.executemany(f"INSERT INTO rows VALUES ({self._marks})", values)
        return 0

    @property
    def _marks(self) -> str:
        return ", ".join("?" * len(self.columns))

    @property
    def _key_places(self) -> list[int]:
        return [self._place(name) for name in self._schema.primary_key]

    def _upsert(self, connection: sqlite3.Connection, values: list[StoredRow], deltas: list[int]) -> None:
        """The last record of each primary key counts."""
        places = self._key_places
        last = {
            tuple(row[place] for place in places): row if delta > 0 else None
            for row, delta in zip(values, deltas, strict=True)
        }
        equal = " AND ".join(f"c{place} = ?" for place in places)
        connection.executemany(f"DELETE FROM rows WHERE {equal}", [key for key, row in last.items() if row is None])
        put = [row for row in last.values() if row is not None]
        connection.executemany(f"REPLACE INTO rows VALUES ({self._marks})", put)

    def _replace_or_delete(self, connection: sqlite3.Connection, values: list[StoredRow], deltas: list[int]) -> int:
        places, dangling = self._key_places, 0
        others = [place for place in range(len(self._declared)) if place not in places]
        compared = [*places, *others]
        equal = " AND ".join([*(f"c{place} = ?" for place in places), *(f"c{place} IS ?" for place in others)])
        for row, delta in zip(values, deltas, strict=True):
            if delta > 0:
                connection.execute(f"REPLACE INTO rows VALUES ({self._marks})", row)
            else:
                deleted = connection.execute(f"DELETE FROM rows WHERE {equal}", [row[place] for place in compared])
                dangling += deleted.rowcount == 0
        return dangling

    def _count(self, connection: sqlite3.Connection, values: list[StoredRow], deltas: list[int]) -> None:
        """Rows are equal that agree in the declared columns; the times are those of the last insertion."""
        width = len(self._declared)
        changed: dict[bytes, tuple[StoredRow, int]] = {}
        for row, delta in zip(values, deltas, strict=True):
            digest = hashlib.blake2b(repr(row[:width]).encode(), digest_size=16).digest()
            before, count = changed.get(digest, (row, 0))
            changed[digest] = (row if delta > 0 else before, count + delta)
        times = "".join(
            f", c{place} = CASE WHEN excluded.n > 0 THEN excluded.c{place} ELSE c{place} END"
            for place in range(width, len(self.columns))
        )
        connection.executemany(
            f"INSERT INTO rows VALUES ({self._marks}, ?, ?) ON CONFLICT (hash) DO UPDATE SET n = n + excluded.n{times}",
            [(*row, count, digest) for digest, (row, count) in changed.items() if count],
        )
        connection.execute("DELETE FROM rows WHERE n = 0")

    @property
    def count(self) -> str:
        return f"SELECT coalesce(sum({'max(n, 0)' if self._counted else '1'}), 0) FROM rows"

    def query(self, by: Sequence[str], columns: Sequence[str] | None) -> RowsQuery:
        """The lookup by equality of ``by``; rows hold ``columns``, by default those declared."""
        shape = (tuple(by), self._declared if columns is None else tuple(columns))
        found = self._queries.get(shape)
        if found is None:
            found = self._queries[shape] = self._query(*shape)
        return found

    def all_rows(self) -> RowsQuery:
        return self._query((), self._declared)

    def _query(self, by: tuple[str, ...], columns: tuple[str, ...]) -> RowsQuery:
        keys, read = ([self._place(name) for name in names] for names in (by, columns))
        selected = [f"rows.c{place}" for place in read] + (["rows.n"] if self._counted else [])
        conditions = [f"rows.c{place} = asked.k{number}" for number, place in enumerate(keys)]
        conditions += ["rows.n > 0"] if self._counted else []
        return RowsQuery(
            key_codecs=[self._codecs[place] for place in keys],
            codecs=[self._codecs[place] for place in read],
            selected=", ".join(selected) or "1",
            conditions=" AND ".join(conditions) or "1",
            counted=self._counted,
        )
