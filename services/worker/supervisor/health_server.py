"""What the worker says of its health, and the figures of its children."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from dovetail.runtime.health_server import HealthServer, HealthStatus, own_requests_only
from dovetail.runtime.processes.listener import listening
from dovetail.runtime.serving.foreign_requests import hosts_of
from dovetail.runtime.settings import Settings
from dovetail.services.worker.supervisor.child_process import Child
from dovetail.services.worker.supervisor.worker_supervisor import WorkerSupervisor


@dataclass(frozen=True)
class ChildrenFigures(Collector):
    """The figures of all children: each family once, with the samples of all."""

    children: Callable[[], list[Child]]

    def collect(self) -> Iterator[Metric]:
        families: dict[str, Metric] = {}
        for child in self.children():
            for family in text_string_to_metric_families(child.metrics()):
                known = families.setdefault(family.name, Metric(family.name, family.documentation, family.type))
                known.samples += family.samples
        yield from families.values()


def health_server(supervisor: WorkerSupervisor, alive: Callable[[], bool], settings: Settings) -> HealthServer:
    """Of a worker: it is ready when each of its queries has its partitions."""

    def healthy() -> HealthStatus:
        return HealthStatus(alive(), {"queries": sorted(child.name for child in supervisor.children)})

    def ready() -> HealthStatus:
        queries = {child.name: child.ready() for child in supervisor.children}
        return HealthStatus(alive() and all(queries.values()), {"queries": queries})

    bind = settings.worker_bind
    listener = listening(bind, settings.worker_port, "DOVETAIL_WORKER_BIND")
    checked = own_requests_only(hosts_of(bind, settings.worker_hosts), "DOVETAIL_WORKER_HOSTS")
    return HealthServer(healthy, ready, ChildrenFigures(lambda: supervisor.children), listener, checked)
