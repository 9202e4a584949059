"""Entries as bytes: ``[expires_ms,fetched_ms,[row],..]`` in JSON.

The expiry stands first, in digits, so that the scripts inside Redis can read it as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
import pyarrow as pa

from dictionaries.cache.entry import Entry
from dictionaries.cache.values import is_plain, tagged, untagged
from dictionaries.lookup import Row, Rows


class Codec:
    """Reads and writes the entries of one dictionary; ``types`` are those of its columns."""

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._width = len(types)
        self._tagged = [at for at, kind in enumerate(types) if not is_plain(kind)]

    def encode(self, rows: Rows, fetched_ms: int, expires_ms: int) -> bytes | None:
        """The bytes, or None if a value has no form in JSON (text that is not Unicode, for example)."""
        try:
            written = rows if not self._tagged else [self._tag(row) for row in rows]
            return orjson.dumps([expires_ms, fetched_ms, *written])
        except TypeError:
            return None

    def decode(self, values: Sequence[bytes | None]) -> list[Entry | None]:
        """The entries; None for None, and for bytes that ``encode`` did not write."""
        try:
            return self._decode(values)
        except (ValueError, TypeError, LookupError):
            return [self._decode_alone(value) for value in values]

    def _decode(self, values: Sequence[bytes | None]) -> list[Entry | None]:
        # One document for the whole batch: a call of the parser costs more than a short entry.
        parsed = orjson.loads(b"[" + b",".join([value or b"null" for value in values]) + b"]")
        if len(parsed) != len(values):
            raise ValueError("an entry is not one JSON value")
        # tuple.__new__ instead of Entry(..), and one row without a loop: this is the path of every answer of Redis.
        new = tuple.__new__
        entries = [
            None
            if value is None or raw is None
            else new(Entry, ((tuple(value[2]),) if len(value) == 3 else _several(value), value[1], value[0], len(raw)))
            for value, raw in zip(parsed, values, strict=True)
        ]
        return self._untag(entries) if self._tagged else entries

    def _decode_alone(self, value: bytes | None) -> Entry | None:
        try:
            [entry] = self._decode([value])
        except (ValueError, TypeError, LookupError):
            return None
        if entry is None or any(len(row) != self._width for row in entry.rows):
            return None
        return entry

    def _tag(self, row: Row) -> list[object]:
        values = list(row)
        for at in self._tagged:
            values[at] = tagged(values[at])
        return values

    def _untag(self, entries: list[Entry | None]) -> list[Entry | None]:
        return [
            None if entry is None else entry._replace(rows=tuple([self._untag_row(row) for row in entry.rows]))
            for entry in entries
        ]

    def _untag_row(self, row: Row) -> Row:
        values = list(row)
        for at in self._tagged:
            values[at] = untagged(values[at])
        return tuple(values)


def _several(value: list[Any]) -> Rows:
    return tuple(map(tuple, value[2:]))
