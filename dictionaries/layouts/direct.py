"""DIRECT: every lookup asks the source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dovetail.changelog.lookup import Key, Rows
from dovetail.dictionaries.cache.cache_settings import read_settings
from dovetail.dictionaries.cache.filling.fetcher import Fetcher, SourceLayer
from dovetail.dictionaries.cache.filling.on_error import OnErrorLayer
from dovetail.dictionaries.cache.flights.flight import Flight
from dovetail.dictionaries.cache.layout_statistics import Statistics
from dovetail.dictionaries.contracts import Source
from dovetail.dictionaries.definition.definition import Definition


class Direct:
    """Nothing is kept, so there is nothing to invalidate. Failures of the source: as ``on_error`` says."""

    def __init__(self, definition: Definition, source: Source) -> None:
        settings = read_settings(definition)
        self._statistics = Statistics(definition)
        self._fetcher = Fetcher(definition, source, settings, self._statistics)
        self._layers = OnErrorLayer(settings, self._statistics, SourceLayer(self._fetcher))

    def lookup(self, keys: Sequence[Key], now_ms: int) -> list[Rows]:
        flight = Flight(keys, now_ms)
        if keys:
            self._layers.answer(flight, keys)
        rows = [flight.answers[key] for key in keys]
        self._statistics.count(misses=len(keys))
        self._statistics.answered(rows)
        return rows

    def invalidate(self, keys: Sequence[Key] | None = None, prefix: str | None = None, token: str = "") -> int:
        return 0

    def misses(self, keys: Sequence[Key], now_ms: int) -> Mapping[Key, tuple[int, int]]:
        return {}

    def statistics(self) -> Mapping[str, Any]:
        return self._statistics.report(element_count=0, bytes_allocated=0, load_factor=0.0)

    def close(self) -> None:
        self._fetcher.close()
