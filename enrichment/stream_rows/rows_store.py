"""The current rows of a stream on local disk, looked up by primary key, by a prefix of it, or by an index.

**Content.** What ``changelog.topic_content`` says of the records taken in so far: of UPSERT and CHANGELOG_KV the row of
each primary key, of CHANGELOG each row as often as its deltas add up to, of APPEND every row. Here a -1 of a
CHANGELOG_KV stream deletes the row that it equals, and no other.

The rows and the offsets up to which the topic is read change together, so a restart goes on from there.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from dovetail.changelog.changes import DELTA, DELTA_TYPE
from dovetail.changelog.lookup import Key, Row, Rows
from dovetail.changelog.rows import numpy_column
from dovetail.changelog.schema import ARRIVAL, OFFSET_BITS, StreamSchema
from dovetail.dictionaries.idle_pool import IdlePool
from dovetail.enrichment.sqlite_file import connect, open_or_replace, write_transaction
from dovetail.enrichment.stream_rows.rows_tables import RowsTables
from dovetail.joins.dataflow.lookup import Access
from dovetail.sql.syntax.statements import Index

_ROWS_PER_PIECE = 1_000


class RowsStore:
    """The rows of ``schema`` in a SQLite file. One writer, any number of readers on threads of their own.

    path      of the file, made where there is none. A file of another schema, or one that is damaged, is begun anew
    indexes   what rows are looked up by, besides the primary key
    """

    def __init__(self, path: str | Path, schema: StreamSchema, indexes: Sequence[Index] = ()) -> None:
        self.schema = schema
        self.dangling = 0
        """Retractions of CHANGELOG_KV rows that were not there."""
        self._path = Path(path)
        self._layout = RowsTables(schema, indexes)
        self._writing = threading.Lock()
        self._readers = IdlePool(lambda: connect(self._path), sqlite3.Connection.close)
        self._writer = self._opened()
        self._offsets = dict(self._writer.execute("SELECT partition, next FROM offsets"))

    @property
    def columns(self) -> tuple[str, ...]:
        """What rows that are taken in must hold, besides ``delta``: the declared columns, ``_tp_time``, ``_tp_sn``, and
        those that are included.
        """
        return self._layout.columns

    @property
    def offsets(self) -> dict[int, int]:
        """For each partition the offset of the first record that is not in."""
        with self._writing:
            return dict(self._offsets)

    def apply(self, rows: pa.Table, offsets: Mapping[int, int]) -> None:
        """Take decoded rows in, in their order, and move to ``offsets``, all or nothing.

        Rows below the offsets reached are in already, and are left out.
        """
        with self._writing:
            rows = _not_before(rows, self._offsets)
            with write_transaction(self._writer):
                dangling = self._layout.take(self._writer, rows)
                self._writer.executemany("REPLACE INTO offsets VALUES (?, ?)", list(offsets.items()))
            self._offsets.update(offsets)
            self.dangling += dangling

    def store(self, rows: Sequence[Row]) -> None:
        """Put rows of the declared columns, whatever the topic says later."""
        names = [column.name for column in self.schema.columns]
        arrays = [
            pa.array([row[place] for row in rows], column.type) for place, column in enumerate(self.schema.columns)
        ]
        for name in self.columns[len(names) :]:
            names.append(name)
            arrays.append(pa.nulls(len(rows), self.schema.types[name]))
        deltas = pa.array(np.ones(len(rows)), DELTA_TYPE)
        self.apply(pa.Table.from_arrays([*arrays, deltas], names=[*names, DELTA]), {})

    def fetch(self, by: Sequence[str], keys: Sequence[Key], columns: Sequence[str] | None = None) -> dict[Key, Rows]:
        """The rows whose columns ``by`` equal one of the distinct ``keys``; a key without rows is left out.

        All as of one moment. ``columns``: of a row, in order; the declared ones by default. Rows of a key come in the
        order of what serves: the primary key, or the index.
        """
        query = self._layout.query(by, columns)
        found: dict[Key, list[Row]] = {}
        with self._readers.lent() as reader:
            reader.execute("BEGIN")
            try:
                for key, row in query.run(reader, keys):
                    found.setdefault(key, []).append(row)
            finally:
                reader.execute("COMMIT")
        return {key: tuple(rows) for key, rows in found.items()}

    def load(self) -> Iterator[list[Row]]:
        """All rows, in pieces, as of the first."""
        connection = connect(self._path)
        try:
            query = self._layout.all_rows()
            cursor = query.everything(connection)
            while piece := cursor.fetchmany(_ROWS_PER_PIECE):
                yield [row for stored in piece for row in query.rows(list(stored))]
        finally:
            connection.close()

    def count(self) -> int:
        """The number of rows."""
        with self._readers.lent() as reader:
            (count,) = reader.execute(self._layout.count).fetchone()
        return int(count)

    @property
    def topic_id(self) -> str:
        """The id of the topic that the rows are of, as it was told to ``clear``; '' before."""
        with self._writing:
            return _noted(self._writer, "topic_id") or ""

    def clear(self, topic_id: str = "") -> None:
        """Forget all rows and offsets: those to come are of ``topic_id``."""
        with self._writing:
            self._layout.create(self._writer)
            self._writer.execute("INSERT INTO meta VALUES ('topic_id', ?)", (topic_id,))
            self._offsets.clear()

    def close(self) -> None:
        with self._writing:
            self._readers.close()
            self._writer.close()

    def _opened(self) -> sqlite3.Connection:
        connection = open_or_replace(self._path)
        if _noted(connection, "fingerprint") != self._layout.fingerprint:
            self._layout.create(connection)
        return connection


class StoreLookup:
    """An access to a store, as a join asks it."""

    def __init__(self, store: RowsStore, access: Access) -> None:
        self._store = store
        self._access = access

    def lookup(self, keys: Sequence[Key], now_ms: int) -> list[Rows]:
        found = self._store.fetch(self._access.by, keys, self._access.columns)
        return [found.get(key, ()) for key in keys]


def _noted(connection: sqlite3.Connection, name: str) -> str | None:
    if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone() is None:
        return None
    row = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return None if row is None else str(row[0])


def _not_before(rows: pa.Table, offsets: Mapping[int, int]) -> pa.Table:
    if not offsets or ARRIVAL not in rows.column_names or rows.num_rows == 0:
        return rows
    arrivals = numpy_column(rows, ARRIVAL)
    partitions, places = arrivals >> OFFSET_BITS, arrivals & ((1 << OFFSET_BITS) - 1)
    fresh = np.ones(len(arrivals), dtype=np.bool_)
    for partition, following in offsets.items():
        fresh &= (partitions != partition) | (places >= following)
    return rows if fresh.all() else rows.filter(pa.array(fresh))
