"""What the service has done, for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from services.serve.statements.desk import Desk
from services.serve.tails.fan_out import FanOut


class Figures:
    """The metrics of one service."""

    def __init__(self, desk: Desk, fan_out: FanOut) -> None:
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
        behind = Gauge("dovetail_serve_behind", "Clients so far that were told to resume", registry=self._registry)
        behind.set_function(lambda: fan_out.behind)

    def page(self) -> bytes:
        return generate_latest(self._registry)
