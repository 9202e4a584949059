"""Rows in memory, with an index for each set of columns that is asked by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock
from typing import Any

from dovetail.changelog.lookup import Key, Row, Rows
from dovetail.dictionaries.sources.source_rows import ROWS_PER_PIECE, SourceRowReader, in_pieces

Given = Sequence[Any]
"""A row as the source gave it, not yet of the declared types."""


class IndexedRows:
    """What a source gave at one moment. Thread-safe."""

    def __init__(self, reader: SourceRowReader, given: Sequence[Given]) -> None:
        self._reader = reader
        self._given = given
        self._indexes: dict[tuple[str, ...], dict[Key, list[Given]]] = {}
        self._lock = Lock()

    def fetch(self, by: Sequence[str], keys: Sequence[Key]) -> dict[Key, Rows]:
        with self._lock:
            index = self._indexes.get(tuple(by))
            if index is None:
                index = self._indexes[tuple(by)] = self._indexed(by)
        return self._reader.matching(by, keys, [row for key in keys for row in index.get(key, ())])

    def load(self) -> Iterator[list[Row]]:
        for piece in in_pieces(self._given, ROWS_PER_PIECE):
            yield self._reader.read(piece)

    def _indexed(self, by: Sequence[str]) -> dict[Key, list[Given]]:
        index: dict[Key, list[Given]] = {}
        for key, row in zip(self._reader.row_keys(by, self._given), self._given, strict=True):
            index.setdefault(key, []).append(row)
        return index
