"""Ports of the loopback interface."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from urllib.parse import urlsplit

LOOPBACK = "127.0.0.1"


def choose_ports(*preferred: int) -> tuple[int, ...]:
    """Each preferred port if it is free, else a free one; 0 always means a free one. All differ."""
    with ExitStack() as sockets:
        # All sockets stay open until every port is chosen, so the kernel hands out none of them twice.
        return tuple(sockets.enter_context(_bound(port)).getsockname()[1] for port in preferred)


def port_of(endpoint: str | None, otherwise: int) -> int:
    """The port in ``host:port`` or ``redis://host:port/0``; ``otherwise`` where there is no endpoint yet."""
    return otherwise if endpoint is None else urlsplit(f"//{endpoint.rpartition('//')[2]}").port or otherwise


def _bound(port: int) -> socket.socket:
    try:
        return _bind(port)
    except OSError:
        return _bind(0)


def _bind(port: int) -> socket.socket:
    server = socket.socket()
    # A port whose old connections linger in TIME_WAIT is free to a new server.
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        server.bind((LOOPBACK, port))
    except OSError:
        server.close()
        raise
    return server
