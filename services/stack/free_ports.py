"""Ports of the loopback interface."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

LOOPBACK = "127.0.0.1"
_LEAST = 10_000
_TRIES = 100
_CONNECTIONS = Path("/proc/sys/net/ipv4/ip_local_port_range")
"""The ports that the kernel gives to connections, on Linux."""


def choose_ports(*preferred: int) -> tuple[int, ...]:
    """Each preferred port if it is free, else a free one; 0 always means a free one. All differ."""
    with ExitStack() as sockets:
        # All sockets stay open until every port is chosen, so none of them is chosen twice.
        return tuple(sockets.enter_context(_bound(port)).getsockname()[1] for port in preferred)


def port_of(endpoint: str | None, otherwise: int) -> int:
    """The port in ``host:port`` or ``redis://host:port/0``; ``otherwise`` where there is no endpoint yet."""
    return otherwise if endpoint is None else urlsplit(f"//{endpoint.rpartition('//')[2]}").port or otherwise


def _bound(port: int) -> socket.socket:
    for tried in (*([port] if port else []), *_below_connections()):
        try:
            return _bind(tried)
        except OSError:
            continue
    return _bind(0)


def _below_connections() -> Iterator[int]:
    """Ports that no connection has: one that has been chosen could become that of a connection before its server, which
    takes a second to start, listens at it.
    """
    try:
        first = int(_CONNECTIONS.read_text().split()[0])
    except OSError:
        return
    if first - _LEAST > _TRIES:
        yield from (random.randrange(_LEAST, first) for _ in range(_TRIES))


def _bind(port: int) -> socket.socket:
    server = socket.socket()
    # A port whose old connections linger in TIME_WAIT is free to a new server.
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        server.bind((LOOPBACK, port))
        # Two sockets that may share a port, and listen not yet, are both bound to it.
        server.listen(1)
    except OSError:
        server.close()
        raise
    return server
