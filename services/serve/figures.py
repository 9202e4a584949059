"""What the service has done, for Prometheus."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from dovetail.services.serve.statements.statement_pool import StatementPool
from dovetail.services.serve.tails.fan_out import FanOut


class _Behind(Collector):
    """A count that the service keeps itself."""

    def __init__(self, fan_out: FanOut) -> None:
        self._fan_out = fan_out

    def collect(self) -> Iterator[Metric]:
        yield CounterMetricFamily(
            "dovetail_serve_behind", "Clients that took too little, and were told to resume", self._fan_out.behind
        )


class Figures:
    """The metrics of one service."""

    def __init__(self, desk: StatementPool, fan_out: FanOut) -> None:
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "dovetail_serve_requests", "Requests that were answered, by status", ["status"], registry=self._registry
        )
        working = Gauge("dovetail_serve_working", "Requests with statements at work", registry=self._registry)
        working.set_function(lambda: desk.working)
        clients = Gauge("dovetail_serve_tails", "Clients that follow changes", registry=self._registry)
        clients.set_function(lambda: fan_out.clients)
        readers = Gauge("dovetail_serve_readers", "Topics that are read for them", registry=self._registry)
        readers.set_function(lambda: fan_out.readers)
        self._registry.register(_Behind(fan_out))

    def page(self) -> bytes:
        return generate_latest(self._registry)
