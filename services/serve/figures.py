"""What the service has done, for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from services.serve.statements.desk import Desk


class Figures:
    """The metrics of one service."""

    def __init__(self, desk: Desk) -> None:
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "dovetail_serve_requests", "Requests that were answered, by status", ["status"], registry=self._registry
        )
        working = Gauge("dovetail_serve_working", "Requests with statements at work", registry=self._registry)
        working.set_function(lambda: desk.working)

    def page(self) -> bytes:
        return generate_latest(self._registry)
