"""MUTABLE_CACHE: a mutable stream is the cache of a source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from changelog.lookup import Key, Row, Rows
from dictionaries.cache.filling.fetcher import Fetcher
from dictionaries.cache.filling.on_error import substitutes
from dictionaries.cache.flights.flights import Flight, Flights
from dictionaries.cache.key_text import key_text
from dictionaries.cache.refresh.executed import Executed
from dictionaries.cache.settings import read_settings
from dictionaries.cache.statistics import Statistics
from dictionaries.contracts import Source
from dictionaries.definition.definition import Definition
from dictionaries.resources import StreamRows


class MutableCache:
    """A row of the stream wins over the source, however old it is: a feed of changes into the stream keeps it fresh.

    A key that the stream lacks is asked for at the source. With UPDATE_FROM_SOURCE true what was found is written into
    the stream, where everybody who reads it finds it; absence is not. In a process one thread asks for a key at a time.

    To invalidate is to write the source's rows over the stream's; without UPDATE_FROM_SOURCE the stream is not ours
    to write, and nothing is done.
    """

    def __init__(self, definition: Definition, source: Source, stream_rows: StreamRows) -> None:
        self._settings = read_settings(definition)
        self._statistics = Statistics(definition)
        self._fetcher = Fetcher(definition, source, self._settings, self._statistics)
        self._by = definition.key
        self._places = [definition.names.index(name) for name in definition.key]
        self._stream = stream_rows
        self._stores = bool(definition.layout.parameters.get("update_from_source", False))
        self._flights = Flights()
        self._executed = Executed()
        self._seen_ms = 0

    def lookup(self, keys: Sequence[Key], now_ms: int) -> list[Rows]:
        self._seen_ms = now_ms
        found = self._stream.fetch(self._by, keys)
        missing = [key for key in keys if not found.get(key)]
        self._statistics.count(cold=len(keys) - len(missing), misses=len(missing))
        if missing:
            found = found | self._from_source(missing, now_ms)
        rows = [found.get(key, ()) for key in keys]
        self._statistics.answered(rows)
        return rows

    def invalidate(self, keys: Sequence[Key] | None = None, prefix: str | None = None, token: str = "") -> int:
        """Fetches rows of the stream anew; of how many keys. Raises ServiceUnavailable without an answer."""
        if not self._stores or not self._executed.first(token):
            return 0
        self._statistics.count(invalidations=1)
        wanted = list(keys or ())
        if keys is None or prefix is not None:
            wanted += [key for key in self._held() if prefix is None or key_text(key).startswith(prefix)]
        unanswered = self._fetcher.fetch(wanted, lambda _, found: self._store(found), self._seen_ms)
        if unanswered is not None:
            self._executed.forget(token)
            raise unanswered.error
        return len(wanted)

    def statistics(self) -> Mapping[str, Any]:
        return self._statistics.report(element_count=0, bytes_allocated=0, load_factor=0.0)

    def close(self) -> None:
        self._fetcher.close()

    def _from_source(self, keys: Sequence[Key], now_ms: int) -> dict[Key, Rows]:
        flight = self._flights.open(keys)
        with self._flights.flying(flight):
            joined = self._flights.lead(flight, keys)
            if flight.led:
                self._fill(flight, now_ms)
        self._statistics.count(coalesced=sum(map(len, joined.values())))
        answers = flight.answers_with(joined)
        # Whoever asked for them failed.
        left = [key for key in keys if key not in answers]
        return answers | self._from_source(left, now_ms) if left else answers

    def _fill(self, flight: Flight, now_ms: int) -> None:
        def arrived(chunk: Sequence[Key], found: dict[Key, Rows]) -> None:
            if self._stores:
                self._store(found)
            flight.answers.update(dict.fromkeys(chunk, ()) | found)

        unanswered = self._fetcher.fetch(flight.led, arrived, now_ms)
        if unanswered is not None:
            flight.answers.update(substitutes(self._settings, self._statistics, unanswered, {}, now_ms))

    def _store(self, found: Mapping[Key, Rows]) -> None:
        self._stream.store([row for rows in found.values() for row in rows])

    def _held(self) -> list[Key]:
        return [self._key(row) for piece in self._stream.load() for row in piece]

    def _key(self, row: Row) -> Key:
        values = tuple(row[place] for place in self._places)
        return values if len(values) > 1 else values[0]
