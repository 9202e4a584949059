"""A schema registry: the one of the local stack, in a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dovetail.services.stack.free_ports import choose_ports
from dovetail.services.stack.servers.health import UNVERIFIED, is_well
from tests.paths import ROOT
from tests.servers.process import Server


@contextmanager
def schema_registry(folder: Path, **more: str) -> Iterator[Server]:
    """Running, with nothing in it, its file below ``folder``; ``more``: variables of its environment."""
    (port,) = choose_ports(0)
    variables = {
        "PYTHONPATH": str(ROOT),
        "DOVETAIL_DATA_DIR": str(folder),
        "DOVETAIL_SCHEMA_REGISTRY_PORT": str(port),
        **more,
    }
    argv = [
        "env",
        *(f"{name}={value}" for name, value in variables.items()),
        sys.executable,
        "-m",
        "dovetail.services.registry",
    ]
    server = Server("registry", argv, folder, port, "", _answers)
    try:
        server.start()
        yield server
    finally:
        server.kill()


def address(server: Server, scheme: str = "http") -> str:
    return f"{scheme}://{server.host}:{server.port}"


def _answers(server: Server) -> bool:
    return any(is_well(f"{address(server, scheme)}/health", UNVERIFIED) for scheme in ("http", "https"))
