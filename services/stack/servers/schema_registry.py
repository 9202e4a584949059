"""The schema registry of the stack: a process that keeps schemas in a file."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.runtime.processes.listener import host_and_port
from dovetail.runtime.settings import Settings
from dovetail.services.stack.component import Launch
from dovetail.services.stack.free_ports import choose_ports, port_of
from dovetail.services.stack.servers.health import UNVERIFIED, is_well


@dataclass(frozen=True)
class SchemaRegistry:
    """Healthy once ``/health`` says so."""

    name: str = "registry"
    after: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    module: str = "dovetail.services.registry"
    reads_secrets: bool = False

    def prepare(self, settings: Settings) -> Launch:
        (port,) = choose_ports(port_of(settings.schema_registry_url, settings.schema_registry_port))
        scheme = "http" if settings.schema_registry_tls_certificate is None else "https"
        return Launch.of_module(
            self.module,
            endpoint=f"{scheme}://{host_and_port(settings.schema_registry_bind, port)}",
            environment={"DOVETAIL_SCHEMA_REGISTRY_PORT": str(port)},
        )

    def answers(self, settings: Settings, endpoint: str, pid: int) -> bool:
        return is_well(f"{endpoint}/health", UNVERIFIED)

    def provided(self, settings: Settings) -> bool:
        return settings.schema_registry_url is not None

    def announce(self, settings: Settings, endpoint: str) -> Settings:
        return settings.model_copy(update={"schema_registry_url": endpoint})
