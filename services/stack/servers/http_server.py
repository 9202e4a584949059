"""The HTTP server: the process that answers programs and pages."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.runtime.processes.listener import host_and_port
from dovetail.runtime.settings import Settings
from dovetail.services.stack.component import Launch
from dovetail.services.stack.free_ports import choose_ports, port_of
from dovetail.services.stack.servers.health import UNVERIFIED, is_well


@dataclass(frozen=True)
class HttpServer:
    """Healthy once ``/health`` says so."""

    name: str = "serve"
    after: tuple[str, ...] = ("kafka", "registry")
    beside: tuple[str, ...] = ()
    module: str = "dovetail.services.serve"
    reads_secrets: bool = True

    def prepare(self, settings: Settings) -> Launch:
        (port,) = choose_ports(settings.serve_port)
        scheme = "http" if settings.serve_tls_certificate is None else "https"
        return Launch.of_module(
            self.module,
            endpoint=f"{scheme}://{host_and_port(settings.serve_bind, port)}",
            environment={"DOVETAIL_SERVE_PORT": str(port)},
        )

    def answers(self, settings: Settings, endpoint: str, pid: int) -> bool:
        return is_well(f"{endpoint}/health", UNVERIFIED)

    def provided(self, settings: Settings) -> bool:
        return False

    def announce(self, settings: Settings, endpoint: str) -> Settings:
        """Started again, it has the address that is known."""
        return settings.model_copy(update={"serve_port": port_of(endpoint, settings.serve_port)})
