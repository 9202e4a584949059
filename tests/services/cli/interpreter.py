"""An interpreter from which commands are forked, without the rest of a stack."""

from __future__ import annotations

import sys

from dovetail.runtime.processes import interpreters
from dovetail.runtime.processes.own_fork_server import ForkServer
from tests.services.worker.lanes import until

PRELOADED = "dovetail.services.cli.forked.preloaded"
START = [sys.executable, "-m", "dovetail.services.cli.start"]
_PATIENCE_S = 30.0


def ready(modules: list[str], environment: dict[str, str]) -> ForkServer:
    server = ForkServer(modules, environment)
    until(lambda: server.is_ready, _PATIENCE_S)
    interpreters.announce(server.pid, server.address)
    return server
