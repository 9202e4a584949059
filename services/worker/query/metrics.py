"""The figures of a query in the form of Prometheus, read when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dovetail.dictionaries.cache.layout_statistics import Statistics
from dovetail.services.worker.lane.lanes import Lanes
from dovetail.services.worker.query.cache_occupancy import memos_in
from dovetail.services.worker.tables.lookup_tables import Tables

_COUNTS = {
    "rows_in": "records read and answered, in committed transactions",
    "rows_out": "records written, in committed transactions",
    "rejected": "records that became dead letters",
    "failed": "calls in expressions that had no value for a row, and gave NULL",
    "dangling": "retractions of rows that were never inserted",
}
_DICTIONARY_COUNTS = frozenset({*Statistics.COUNTERS, "hot_hits", "cold_hits", "evictions"})
_IN_SECONDS = {
    "lifetime_min": ("lifetime_min_seconds", 1.0),
    "lifetime_max": ("lifetime_max_seconds", 1.0),
    "loading_duration": ("loading_duration_seconds", 1.0),
    "loading_start_time": ("loading_start_timestamp_seconds", 0.001),
    "last_successful_update_time": ("last_successful_update_timestamp_seconds", 0.001),
    "age_mean_ms": ("age_mean_seconds", 0.001),
    "age_max_ms": ("age_max_seconds", 0.001),
}
"""Figures that are times: how Prometheus would have them called, and what makes seconds of them."""


class QueryFigures(Collector):
    """What one process knows of its query and of the dictionaries that it has open.

    folder    holds its memos
    restarts  how often its environment has ended the query
    """

    def __init__(self, query: str, lanes: Lanes, tables: Tables, folder: Path, restarts: Callable[[], int]) -> None:
        self._folder = folder
        self._restarts = restarts
        self._query = query
        self._lanes = lanes
        self._tables = tables

    def collect(self) -> Iterator[Metric]:
        counts = self._lanes.counts()
        for name, text in _COUNTS.items():
            yield _one(CounterMetricFamily, f"dovetail_worker_{name}", text, self._query, counts[name])
        yield _one(
            GaugeMetricFamily, "dovetail_worker_partitions", "partitions held", self._query, len(self._lanes.partitions)
        )
        yield _one(
            GaugeMetricFamily,
            "dovetail_worker_batch_seconds",
            "time that the last batch took",
            self._query,
            self._lanes.batch_ms() / 1000,
        )
        yield _one(
            CounterMetricFamily,
            "dovetail_worker_restarts",
            "starts after the environment had ended it",
            self._query,
            self._restarts(),
        )
        lag = GaugeMetricFamily(
            "dovetail_worker_stream_lag_records",
            "records that a looked-up stream is behind",
            labels=["query", "stream"],
        )
        for stream, offsets in self._tables.followers.lags().items():
            lag.add_metric([self._query, stream], offsets)
        yield lag
        held, size = memos_in(self._folder)
        yield _one(GaugeMetricFamily, "dovetail_worker_memo_rows", "different rows in memos", self._query, held)
        yield _one(GaugeMetricFamily, "dovetail_worker_memo_bytes", "memos on disk", self._query, size)
        yield from self._dictionaries()

    def _dictionaries(self) -> Iterator[Metric]:
        families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
        for dictionary, layout in list(self._tables.layouts.items()):
            for name, value in _numbers(layout.statistics()).items():
                _, scale = _IN_SECONDS.get(name, (name, 1.0))
                families.setdefault(name, _family(name)).add_metric([self._query, dictionary], value * scale)
        yield from families.values()


def _numbers(figures: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in figures.items() if isinstance(value, int | float)}


def _family(name: str) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if name in _DICTIONARY_COUNTS else GaugeMetricFamily
    called, _ = _IN_SECONDS.get(name, (name, 1.0))
    return kind(f"dovetail_dictionary_{called}", f"{name} of system.dictionaries", labels=["query", "dictionary"])


def _one(kind: Callable[..., Any], name: str, text: str, query: str, value: float) -> Metric:
    family: Any = kind(name, text, labels=["query"])
    family.add_metric([query], value)
    assert isinstance(family, Metric)
    return family
