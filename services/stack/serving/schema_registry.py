"""The schema registry of the stack: a process that keeps schemas in a file."""

from __future__ import annotations

import sys
import urllib.request
from dataclasses import dataclass

from runtime.settings import Settings
from services.stack.component import Launch
from services.stack.free_ports import choose_ports, port_of

_ANSWER_TIMEOUT_S = 1.0


@dataclass(frozen=True)
class SchemaRegistry:
    """Healthy once ``/health`` says so."""

    name: str = "registry"
    after: tuple[str, ...] = ()
    module: str = "services.registry"

    def prepare(self, settings: Settings) -> Launch:
        (port,) = choose_ports(port_of(settings.schema_registry_url, settings.schema_registry_port))
        host = settings.schema_registry_bind
        return Launch(
            (sys.executable, "-m", self.module),
            endpoint=f"http://{f'[{host}]' if ':' in host else host}:{port}",
            environment={"DOVETAIL_SCHEMA_REGISTRY_PORT": str(port)},
        )

    def answers(self, settings: Settings, endpoint: str, pid: int) -> bool:
        try:
            with urllib.request.urlopen(f"{endpoint}/health", timeout=_ANSWER_TIMEOUT_S) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def provided(self, settings: Settings) -> bool:
        return settings.schema_registry_url is not None

    def announce(self, settings: Settings, endpoint: str) -> Settings:
        return settings.model_copy(update={"schema_registry_url": endpoint})
