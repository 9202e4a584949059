"""The figures of the runner's queries in the form of Prometheus, read from the catalog when they are asked for.

They are those of SHOW QUERIES, so counters go on over restarts of the runner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dovetail.broker import clients, topics
from dovetail.broker.address import BrokerAddress
from dovetail.changelog.errors import ServiceUnavailable, UnknownName
from dovetail.runtime.clock import now_ms
from dovetail.sql.catalog import Actual, Catalog, Desired, Query
from dovetail.sql.engines import Engine

Figure = Callable[[Query], float]

_COUNTS = {
    "rows_in": "records read, in committed batches",
    "rows_out": "records written, in committed batches",
    "rejected": "records that became dead letters",
    "failed": "calls in expressions that had no value for a row, and gave NULL",
    "dangling": "retractions of rows that were never inserted",
}


class QueriesFigures(Collector):
    """Of all queries that Spark runs."""

    def __init__(self, catalog: Catalog, brokers: BrokerAddress) -> None:
        self._catalog = catalog
        self._client = clients.admin(brokers)

    def collect(self) -> Iterator[Metric]:
        queries = [query for query in self._catalog.queries() if query.engine == Engine.SPARK]
        for name, text in _COUNTS.items():
            yield _each(CounterMetricFamily(f"dovetail_query_{name}", text, labels=["query"]), queries, _count(name))
        yield _late(queries)
        restarts = CounterMetricFamily(
            "dovetail_query_restarts", "starts after the environment had ended it", labels=["query"]
        )
        yield _each(restarts, queries, lambda query: query.restarts)
        running = GaugeMetricFamily("dovetail_query_running", "1 where it runs and is to run", labels=["query"])
        yield _each(running, [query for query in queries if query.desired is Desired.RUNNING], _running)
        batch = GaugeMetricFamily("dovetail_query_batch_seconds", "time that the last batch took", labels=["query"])
        yield _each(batch, queries, lambda query: query.progress.get("batch_ms", 0) / 1000)
        under_way = GaugeMetricFamily(
            "dovetail_query_batch_under_way_seconds", "for how long a batch has been, 0 where none is", labels=["query"]
        )
        yield _each(under_way, queries, lambda query: query.progress.get("under_way_s", 0))
        yield from _state(queries)
        yield from _watermarks(queries)
        yield self._lag(queries)

    def _lag(self, queries: list[Query]) -> Metric:
        """Without samples while the broker does not answer: a lag that is not known is not 0."""
        lag = GaugeMetricFamily("dovetail_query_lag_records", "records of its inputs not read yet", labels=["query"])
        read = {query.name: query.progress.get("offsets") or query.progress.get("starts", {}) for query in queries}
        try:
            ends = topics.end_offsets(self._client, sorted({topic for offsets in read.values() for topic in offsets}))
        except (ServiceUnavailable, UnknownName):
            return lag
        for name, offsets in read.items():
            lag.add_metric([name], sum(_left(ends[topic], of_topic) for topic, of_topic in offsets.items()))
        return lag


def _left(ends: Mapping[int, int], read: Mapping[str, int]) -> int:
    return sum(max(end - int(read.get(str(partition), 0)), 0) for partition, end in ends.items())


def _running(query: Query) -> int:
    return int(query.actual is Actual.RUNNING)


def _count(name: str) -> Figure:
    return lambda query: query.progress.get("counts", {}).get(name, 0)


def _late(queries: list[Query]) -> Metric:
    late = CounterMetricFamily("dovetail_query_late", "rows behind the watermark", labels=["query", "input"])
    for query in queries:
        for name, count in query.progress.get("late", {}).items():
            late.add_metric([query.name, name], count)
    return late


def _state(queries: list[Query]) -> Iterator[Metric]:
    """Without samples for a query that has not run a batch yet."""
    held = [query for query in queries if query.progress.get("state")]
    kinds = {"rows": "rows that its state holds", "bytes": "size of these rows in memory"}
    for index, (unit, text) in enumerate(kinds.items()):
        family = GaugeMetricFamily(f"dovetail_query_state_{unit}", text, labels=["query"])
        for query in held:
            family.add_metric([query.name], sum(sizes[index] for sizes in query.progress["state"].values()))
        yield family


def _watermarks(queries: list[Query]) -> Iterator[Metric]:
    labels = ["query", "input"]
    at = GaugeMetricFamily(
        "dovetail_query_watermark_timestamp_seconds", "event time before which an input is complete", labels=labels
    )
    lag = GaugeMetricFamily(
        "dovetail_query_watermark_lag_seconds", "how far that is behind the time of day", labels=labels
    )
    collected_ms = now_ms()
    for query in queries:
        for name, watermark_ms in query.progress.get("watermarks", {}).items():
            at.add_metric([query.name, name], watermark_ms / 1000)
            lag.add_metric([query.name, name], (collected_ms - watermark_ms) / 1000)
    yield at
    yield lag


def _each(family: CounterMetricFamily | GaugeMetricFamily, queries: list[Query], figure: Figure) -> Metric:
    for query in queries:
        family.add_metric([query.name], figure(query))
    return family
