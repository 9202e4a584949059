"""The lookup of rows in SQLite: one statement for many keys."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from dovetail.changelog.lookup import Key, Row
from dovetail.enrichment.stream_rows.sqlite_values import SqliteCodec, Stored

_KEYS_PER_QUERY = (1, 16, 128)

StoredRow = tuple[Stored, ...]


class RowsQuery:
    """A lookup of many keys at a time.

    The keys stand in a table of their own, with their numbers: the answer says which key each row is for, and nothing
    depends on how SQLite would print a value.
    """

    def __init__(
        self, key_codecs: list[SqliteCodec], codecs: list[SqliteCodec], selected: str, conditions: str, counted: bool
    ) -> None:
        self._encoders = [code.key for code in key_codecs]
        self._decoders = [(place, code.decode) for place, code in enumerate(codecs) if code.decode is not None]
        self._width = len(codecs)
        self._counted = counted
        self._statements = {size: self._statement(size, selected, conditions) for size in _KEYS_PER_QUERY}
        self._all = f"SELECT {selected} FROM rows WHERE {conditions}"

    def _statement(self, size: int, selected: str, conditions: str) -> str:
        names = ", ".join(f"k{number}" for number in range(len(self._encoders)))
        marks = ", ?" * len(self._encoders)
        values = ", ".join(f"({number}{marks})" for number in range(size))
        # CROSS JOIN keeps the order: an index search per key, never a scan of the rows per key.
        return (
            f"WITH asked (number, {names}) AS (VALUES {values}) "
            f"SELECT asked.number, {selected} FROM asked CROSS JOIN rows ON {conditions}"
        )

    def run(self, connection: sqlite3.Connection, keys: Sequence[Key]) -> Iterator[tuple[Key, Row]]:
        """Each row with the key that it was found under; keys in order."""
        encoded_keys = [pair for pair in zip(keys, map(self._encoded, keys), strict=True) if None not in pair[1]]
        start = 0
        while start < len(encoded_keys):
            rest = len(encoded_keys) - start
            size = next((size for size in _KEYS_PER_QUERY if size >= rest), _KEYS_PER_QUERY[-1])
            piece = encoded_keys[start : start + size]
            values = list(chain.from_iterable(encoded for _, encoded in piece))
            # NULL equals nothing.
            values += [None] * (size * len(self._encoders) - len(values))
            for number, *stored in connection.execute(self._statements[size], values):
                yield from ((piece[number][0], row) for row in self.rows(stored))
            start += size

    def everything(self, connection: sqlite3.Connection) -> sqlite3.Cursor:
        return connection.execute(self._all)

    def rows(self, stored: list[Any]) -> Iterator[Row]:
        """The row, as often as it stands."""
        times = stored[-1] if self._counted else 1
        values = stored[: self._width]
        for place, decode in self._decoders:
            if values[place] is not None:
                values[place] = decode(values[place])
        row = tuple(values)
        return iter([row] * times)

    def _encoded(self, key: Key) -> StoredRow:
        if len(self._encoders) == 1:
            return (self._encoders[0](key),)
        return tuple(encode(value) for encode, value in zip(self._encoders, key, strict=True))
