"""The lookup worker: the process that runs every query that looks up."""

from __future__ import annotations

import sys
import urllib.request
from dataclasses import dataclass

from runtime.settings import Settings
from services.stack.component import Launch
from services.stack.free_ports import choose_ports

_ANSWER_TIMEOUT_S = 1.0


@dataclass(frozen=True)
class LookupWorker:
    """Healthy once ``/healthz`` says so."""

    name: str = "worker"
    after: tuple[str, ...] = ("kafka", "redis", "registry")
    module: str = "services.worker"

    def prepare(self, settings: Settings) -> Launch:
        (port,) = choose_ports(settings.worker_port)
        return Launch(
            (sys.executable, "-m", self.module),
            endpoint=f"http://{settings.worker_bind}:{port}",
            environment={"DOVETAIL_WORKER_PORT": str(port)},
        )

    def answers(self, settings: Settings, endpoint: str, pid: int) -> bool:
        try:
            with urllib.request.urlopen(f"{endpoint}/healthz", timeout=_ANSWER_TIMEOUT_S) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def provided(self, settings: Settings) -> bool:
        return False

    def announce(self, settings: Settings, endpoint: str) -> Settings:
        return settings
