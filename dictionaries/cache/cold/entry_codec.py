"""Entries as bytes: ``[expires_ms,fetched_ms,[row],..]`` in JSON.

The expiry stands first, in digits, so that the scripts inside Redis can read it as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

import orjson
import pyarrow as pa

from dovetail.changelog.lookup import Row, Rows
from dovetail.dictionaries.cache.cache_entry import CacheEntry
from dovetail.dictionaries.cache.cold.json_values import TAG, are_finite, is_plain, tagged, untagged

_BREAK = orjson.Fragment(b"\n")


class EntryCodec:
    """Reads and writes the entries of one dictionary; ``types`` are those of its columns.

    ahead_ms  how far the clock by which entries are kept is ahead of the one by which they are asked for
    """

    def __init__(self, types: Sequence[pa.DataType], ahead_ms: Callable[[], int] = lambda: 0) -> None:
        self._ahead_ms = ahead_ms
        self._width = len(types)
        self._tagged = [at for at, kind in enumerate(types) if not is_plain(kind)]

    def encode(self, answers: Sequence[Rows], fetched_ms: int, expires_ms: int) -> list[bytes | None]:
        """The bytes of each answer, or None if a value of it has no form in JSON (text that is not Unicode)."""
        if not answers:
            return []
        ahead_ms = self._ahead_ms()
        fetched_ms, expires_ms = fetched_ms + ahead_ms, expires_ms + ahead_ms
        try:
            return self._encode(answers, fetched_ms, expires_ms)
        except TypeError:
            return [self._encode_alone(rows, fetched_ms, expires_ms) for rows in answers]

    def _encode(self, answers: Sequence[Rows], fetched_ms: int, expires_ms: int) -> list[bytes | None]:
        written: Iterable[Iterable[object]] = answers
        if self._tagged and not self._all_plain(answers):
            written = [[self._tag(row) for row in rows] for rows in answers]
        # One document for the whole batch, as in ``_decode``, cut at line breaks: no JSON has one inside.
        parts = [part for rows in written for part in ([expires_ms, fetched_ms, *rows], _BREAK)]
        return [*orjson.dumps(parts)[1:-3].split(b",\n,")]

    def _encode_alone(self, rows: Rows, fetched_ms: int, expires_ms: int) -> bytes | None:
        try:
            return self._encode([rows], fetched_ms, expires_ms)[0]
        except TypeError:
            return None

    def _all_plain(self, answers: Sequence[Rows]) -> bool:
        """Whether no value needs a tag, column by column: value by value it would cost more than the JSON does."""
        columns = list(zip(*chain.from_iterable(answers), strict=True))
        return not columns or all(are_finite(columns[at]) for at in self._tagged)

    def decode(self, values: Sequence[bytes | None]) -> list[CacheEntry | None]:
        """The entries; None for None, and for bytes that ``encode`` did not write."""
        try:
            decoded = self._decode(values)
        except (ValueError, TypeError, LookupError):
            decoded = [self._decode_alone(value) for value in values]
        ahead_ms = self._ahead_ms()
        return [_earlier(entry, ahead_ms) for entry in decoded] if ahead_ms else decoded

    def _decode(self, values: Sequence[bytes | None]) -> list[CacheEntry | None]:
        # One document for the whole batch: a call of the parser costs more than a short entry.
        document = b"[" + b",".join([value or b"null" for value in values]) + b"]"
        parsed = orjson.loads(document)
        if len(parsed) != len(values):
            raise ValueError("an entry is not one JSON value")
        # tuple.__new__ instead of Entry(..), and one row without a loop: this is the path of every answer of Redis.
        new = tuple.__new__
        entries = [
            None
            if value is None or raw is None
            else new(
                CacheEntry, ((tuple(value[2]),) if len(value) == 3 else _several(value), value[1], value[0], len(raw))
            )
            for value, raw in zip(parsed, values, strict=True)
        ]
        return self._untag(entries) if self._tagged and TAG in document else entries

    def _decode_alone(self, value: bytes | None) -> CacheEntry | None:
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

    def _untag(self, entries: list[CacheEntry | None]) -> list[CacheEntry | None]:
        return [
            None if entry is None else entry._replace(rows=tuple([self._untag_row(row) for row in entry.rows]))
            for entry in entries
        ]

    def _untag_row(self, row: Row) -> Row:
        values = list(row)
        for at in self._tagged:
            values[at] = untagged(values[at])
        return tuple(values)


def _earlier(entry: CacheEntry | None, by_ms: int) -> CacheEntry | None:
    if entry is None:
        return None
    return entry._replace(fetched_ms=entry.fetched_ms - by_ms, expires_ms=entry.expires_ms - by_ms)


def _several(value: list[Any]) -> Rows:
    return tuple(map(tuple, value[2:]))
