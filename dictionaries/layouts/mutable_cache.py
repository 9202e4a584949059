"""MUTABLE_CACHE: a mutable stream is the cache of a source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from changelog.lookup import Key, Row, Rows
from dictionaries.cache.cache_settings import read_settings
from dictionaries.cache.filling.fetcher import Fetcher, SourceLayer
from dictionaries.cache.filling.on_error import OnErrorLayer
from dictionaries.cache.flights.flight import stacked
from dictionaries.cache.flights.flight_layers import FlightLayer, SingleFlightLayer
from dictionaries.cache.flights.flights import Flights
from dictionaries.cache.invalidation import SeenRefreshes
from dictionaries.cache.key_text import key_text
from dictionaries.cache.layout_statistics import Statistics
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
        settings = read_settings(definition)
        statistics = self._statistics = Statistics(definition)
        self._fetcher = Fetcher(definition, source, settings, statistics)
        self._by = definition.key
        self._places = [definition.names.index(name) for name in definition.key]
        self._stream = stream_rows
        self._stores = bool(definition.layout.parameters.get("update_from_source", False))
        flights = Flights()
        below_flight = stacked(
            lambda below: OnErrorLayer(settings, statistics, below),
            lambda below: SingleFlightLayer(flights, below),
            lowest=SourceLayer(self._fetcher, self._store_if_ours),
        )
        self._misses = FlightLayer(flights, statistics, below_flight)
        self._refreshes = SeenRefreshes()
        self._last_lookup_ms = 0

    def lookup(self, keys: Sequence[Key], now_ms: int) -> list[Rows]:
        self._last_lookup_ms = now_ms
        found = self._stream.fetch(self._by, keys)
        missing = [key for key in keys if not found.get(key)]
        self._statistics.count(cold=len(keys) - len(missing), misses=len(missing))
        if missing:
            found = found | self._misses.answers(missing, now_ms)
        rows = [found.get(key, ()) for key in keys]
        self._statistics.answered(rows)
        return rows

    def invalidate(self, keys: Sequence[Key] | None = None, prefix: str | None = None, token: str = "") -> int:
        """Fetches rows of the stream anew; of how many keys. Raises ServiceUnavailable without an answer."""
        if not self._stores or not self._refreshes.is_new(token):
            return 0
        self._statistics.count(invalidations=1)
        wanted = list(keys or ())
        if keys is None or prefix is not None:
            wanted += [key for key in self._stream_keys() if prefix is None or key_text(key).startswith(prefix)]
        unanswered = self._fetcher.fetch(wanted, lambda _, found: self._store(found), self._last_lookup_ms)
        if unanswered is not None:
            self._refreshes.forget(token)
            raise unanswered.error
        return len(wanted)

    def statistics(self) -> Mapping[str, Any]:
        return self._statistics.report(element_count=0, bytes_allocated=0, load_factor=0.0)

    def close(self) -> None:
        self._fetcher.close()

    def _store_if_ours(self, _: Sequence[Key], found: Mapping[Key, Rows]) -> None:
        if self._stores:
            self._store(found)

    def _store(self, found: Mapping[Key, Rows]) -> None:
        self._stream.store([row for rows in found.values() for row in rows])

    def _stream_keys(self) -> list[Key]:
        return [self._key(row) for piece in self._stream.load() for row in piece]

    def _key(self, row: Row) -> Key:
        values = tuple(row[place] for place in self._places)
        return values if len(values) > 1 else values[0]
