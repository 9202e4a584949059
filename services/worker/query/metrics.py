"""The figures of a query in the form of Prometheus, read when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from services.worker.lane.lanes import Lanes
from services.worker.tables.lookup_tables import Tables

_COUNTS = {
    "rows_in": "records read and answered, in committed transactions",
    "rows_out": "records written, in committed transactions",
    "rejected": "records that became dead letters",
    "failed": "calls in expressions that had no value for a row, and gave NULL",
    "unfounded": "retractions of rows that were never inserted",
}
_GAUGES = frozenset(
    {
        "element_count",
        "bytes_allocated",
        "hit_rate",
        "found_rate",
        "load_factor",
        "loading_duration",
        "threads_failing",
        "is_listening",
    }
)


class QueryFigures(Collector):
    """What one process knows of its query and of the dictionaries that it has open; ``folder`` holds its memos."""

    def __init__(self, query: str, lanes: Lanes, tables: Tables, folder: Path) -> None:
        self._folder = folder
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
        lag = GaugeMetricFamily(
            "dovetail_worker_stream_lag",
            "offsets that a looked-up stream is behind",
            labels=["query", "stream"],
        )
        for stream, offsets in self._tables.followers.lags().items():
            lag.add_metric([self._query, stream], offsets)
        yield lag
        memos = sum(path.stat().st_size for path in self._folder.glob("memo-*.db"))
        yield _one(GaugeMetricFamily, "dovetail_worker_memo_bytes", "memos on disk", self._query, memos)
        yield from self._dictionaries()

    def _dictionaries(self) -> Iterator[Metric]:
        families: dict[str, Metric] = {}
        for dictionary, layout in list(self._tables.layouts.items()):
            for name, value in _numbers(layout.statistics()).items():
                family = families.setdefault(name, _family(name))
                family.add_metric([self._query, dictionary], value)  # type: ignore[attr-defined]
        yield from families.values()


def _numbers(figures: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in figures.items() if isinstance(value, int | float)}


def _family(name: str) -> Metric:
    kind = GaugeMetricFamily if name in _GAUGES else CounterMetricFamily
    text = f"{name} of system.dictionaries"
    return kind(f"dovetail_dictionary_{name}", text, labels=["query", "dictionary"])


def _one(kind: Callable[..., Any], name: str, text: str, query: str, value: float) -> Metric:
    family: Any = kind(name, text, labels=["query"])
    family.add_metric([query], value)
    assert isinstance(family, Metric)
    return family
