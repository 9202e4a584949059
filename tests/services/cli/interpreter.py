"""An interpreter from which commands are forked, without the rest of a stack."""

from __future__ import annotations

import sys
import time

from dovetail.runtime.processes import interpreters
from dovetail.runtime.processes.own_fork_server import ForkServer

PRELOADED = "dovetail.services.cli.forked.preloaded"
START = [sys.executable, "-m", "dovetail.services.cli.start"]
_PATIENCE_S = 30.0


def ready(modules: list[str], environment: dict[str, str]) -> ForkServer:
    server = ForkServer(modules, environment)
    deadline_s = time.monotonic() + _PATIENCE_S
    while not server.is_ready and time.monotonic() < deadline_s:
        time.sleep(0.05)
    interpreters.announce(server.pid, server.address)
    return server
