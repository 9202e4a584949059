"""The lookup worker: the process that runs every query that looks up."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.runtime.processes.listener import host_and_port
from dovetail.runtime.settings import Settings
from dovetail.services.stack.component import Launch
from dovetail.services.stack.free_ports import choose_ports
from dovetail.services.stack.servers.health import is_well


@dataclass(frozen=True)
class LookupWorker:
    """Healthy once ``/healthz`` says so."""

    name: str = "worker"
    after: tuple[str, ...] = ("kafka", "redis", "registry")
    beside: tuple[str, ...] = ()
    module: str = "dovetail.services.worker"
    reads_secrets: bool = True

    def prepare(self, settings: Settings) -> Launch:
        (port,) = choose_ports(settings.worker_port)
        return Launch.of_module(
            self.module,
            endpoint=f"http://{host_and_port(settings.worker_bind, port)}",
            environment={"DOVETAIL_WORKER_PORT": str(port)},
        )

    def answers(self, settings: Settings, endpoint: str, pid: int) -> bool:
        return is_well(f"{endpoint}/healthz")

    def provided(self, settings: Settings) -> bool:
        return False

    def announce(self, settings: Settings, endpoint: str) -> Settings:
        return settings
