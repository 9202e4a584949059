"""The HTTP server: the process that answers programs and pages."""

from __future__ import annotations

import ssl
import sys
import urllib.request
from dataclasses import dataclass

from runtime.settings import Settings
from services.stack.component import Launch
from services.stack.free_ports import choose_ports, port_of

_ANSWER_TIMEOUT_S = 1.0


@dataclass(frozen=True)
class HttpServer:
    """Healthy once ``/health`` says so."""

    name: str = "serve"
    after: tuple[str, ...] = ("kafka", "registry")
    module: str = "services.serve"

    def prepare(self, settings: Settings) -> Launch:
        (port,) = choose_ports(settings.serve_port)
        scheme = "http" if settings.serve_tls_certificate is None else "https"
        host = f"[{settings.serve_bind}]" if ":" in settings.serve_bind else settings.serve_bind
        return Launch(
            (sys.executable, "-m", self.module),
            endpoint=f"{scheme}://{host}:{port}",
            environment={"DOVETAIL_SERVE_PORT": str(port)},
        )

    def answers(self, settings: Settings, endpoint: str, pid: int) -> bool:
        # Whether it lives is asked, not who it is: its certificate is for the names by which others call it.
        trusting = ssl.create_default_context()
        trusting.check_hostname = False
        trusting.verify_mode = ssl.CERT_NONE
        try:
            with urllib.request.urlopen(f"{endpoint}/health", timeout=_ANSWER_TIMEOUT_S, context=trusting) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def provided(self, settings: Settings) -> bool:
        return False

    def announce(self, settings: Settings, endpoint: str) -> Settings:
        """Started again, it has the address that is known."""
        return settings.model_copy(update={"serve_port": port_of(endpoint, settings.serve_port)})
