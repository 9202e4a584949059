"""MUTABLE_CACHE: a mutable stream is the cache of a source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dovetail.changelog.lookup import Key, Row, Rows
from dovetail.dictionaries.cache.cache_entry import misses_of
from dovetail.dictionaries.cache.cache_settings import read_settings
from dovetail.dictionaries.cache.filling.fetcher import Fetcher, SourceLayer
from dovetail.dictionaries.cache.filling.on_error import OnErrorLayer
from dovetail.dictionaries.cache.filling.stream_fill import StreamFill, StreamFillLayer
from dovetail.dictionaries.cache.flights.flight import Layer, stacked
from dovetail.dictionaries.cache.flights.flight_layers import FlightLayer, SingleFlightLayer
from dovetail.dictionaries.cache.flights.flights import Flights
from dovetail.dictionaries.cache.hot.guarded_hot import GuardedHot
from dovetail.dictionaries.cache.hot.hot_layers import AbsenceLayer
from dovetail.dictionaries.cache.hot.hot_tier import HotTier
from dovetail.dictionaries.cache.invalidation import Invalidation, SeenRefreshes
from dovetail.dictionaries.cache.key_text import key_text
from dovetail.dictionaries.cache.layout_statistics import Statistics
from dovetail.dictionaries.contracts import Source
from dovetail.dictionaries.definition.definition import Definition
from dovetail.dictionaries.resources import WritableRows


class MutableCache:
    """A row of the stream wins over the source, however old it is: a feed of changes into the stream keeps it fresh.

    A key that the stream lacks is asked for at the source. With UPDATE_FROM_SOURCE true what was found is written into
    the stream, where everybody who reads it finds it. In a process one thread asks for a key at a time.

    Absence is held in the process, for ``negative_ttl``; the stream is looked at first, so a row that comes is seen.

    To invalidate is to write what the source has over what the stream has; without UPDATE_FROM_SOURCE the stream is not
    ours to write, and absence alone is forgotten.
    """

    def __init__(self, definition: Definition, source: Source, stream_rows: WritableRows) -> None:
        settings = read_settings(definition)
        statistics = self._statistics = Statistics(definition)
        self._fetcher = Fetcher(definition, source, settings, statistics)
        self._by = definition.key
        self._places = [definition.names.index(name) for name in definition.key]
        self._stream = stream_rows
        self._stores = bool(definition.layout.parameters.get("update_from_source", False))
        self._negative_ttl_ms = settings.negative_ttl_ms
        self._fill = StreamFill(stream_rows, definition, self._fetcher)
        flights = Flights()
        self._absent = HotTier(settings.hot_keys, settings.hot_bytes)
        self._guarded = GuardedHot(self._absent, flights)
        lowest: Layer = StreamFillLayer(self._fill) if self._stores else SourceLayer(self._fetcher)
        below_flight = stacked(
            lambda below: OnErrorLayer(settings, statistics, below),
            lambda below: SingleFlightLayer(flights, below),
            lambda below: AbsenceLayer(self._guarded, self._negative_ttl_ms, statistics, below),
            lowest=lowest,
        )
        self._misses = FlightLayer(flights, statistics, below_flight)
        self._refreshes = SeenRefreshes()
        self._last_lookup_ms = 0

    def lookup(self, keys: Sequence[Key], now_ms: int) -> list[Rows]:
        self._last_lookup_ms = now_ms
        found = self._stream.fetch(self._by, keys)
        missing = [key for key in keys if not found.get(key)]
        held = self._absent.lookup(missing, now_ms) if missing else []
        absent = sum(rows is not None for rows in held)
        unknown = [key for key, rows in zip(missing, held, strict=True) if rows is None] if absent else missing
        self._statistics.count(hot=absent, cold=len(keys) - len(missing), misses=len(unknown))
        if unknown:
            found = found | self._misses.answers(unknown, now_ms)
        rows = [found.get(key, ()) for key in keys]
        self._statistics.answered(rows)
        return rows

    def invalidate(self, keys: Sequence[Key] | None = None, prefix: str | None = None, token: str = "") -> int:
        """Fetches rows of the stream anew; of how many keys. Raises ServiceUnavailable without an answer."""
        if not self._refreshes.is_new(token):
            return 0
        self._statistics.count(invalidations=1)
        absent = self._guarded.drop(Invalidation(None if keys is None else tuple(keys), prefix, token))
        if not self._stores:
            return absent
        wanted = list(keys or ())
        if keys is None or prefix is not None:
            wanted += [key for key in self._stream_keys() if prefix is None or key_text(key).startswith(prefix)]
        unanswered = self._fill.fill(wanted, lambda _: None, self._last_lookup_ms)
        if unanswered is not None:
            self._refreshes.forget(token)
            raise unanswered.error
        return len(wanted)

    def misses(self, keys: Sequence[Key], now_ms: int) -> Mapping[Key, tuple[int, int]]:
        """A row that the stream has by now stands before what is known of the source."""
        held = self._stream.fetch(self._by, keys)
        return misses_of(self._absent.kept([key for key in keys if not held.get(key)]), now_ms)

    def statistics(self) -> Mapping[str, Any]:
        """``element_count`` and the bytes are those of the keys that are known to be absent."""
        held = self._absent
        return self._statistics.report(
            element_count=len(held), bytes_allocated=held.bytes, load_factor=len(held) / held.max_keys
        )

    def close(self) -> None:
        self._fetcher.close()

    def _stream_keys(self) -> list[Key]:
        return [self._key(row) for piece in self._stream.load() for row in piece]

    def _key(self, row: Row) -> Key:
        values = tuple(row[place] for place in self._places)
        return values if len(values) > 1 else values[0]
