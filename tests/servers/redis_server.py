"""A Redis server that forgets everything when it ends: the cold tier is a cache."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import redis

from dovetail.services.stack.free_ports import LOOPBACK, choose_ports
from dovetail.services.stack.servers.redis_server import redis_program
from tests.servers.process import Server, ServerFailed

_MEET_S = 60.0
_BUS = 10_000


@contextmanager
def redis_server(folder: Path) -> Iterator[Server]:
    """A running Redis, which asks for no password."""
    folder.mkdir(parents=True, exist_ok=True)
    (port,) = choose_ports(0)
    server = Server("redis", _command(folder, port), folder, port, "", answers=_answers, ask=_ask)
    try:
        server.start()
        yield server
    finally:
        server.kill()


@contextmanager
def redis_cluster(folder: Path) -> Iterator[tuple[Server, Server]]:
    """Two nodes of a Redis Cluster, each with half of the slots."""
    with ExitStack() as stack:
        nodes = [stack.enter_context(_node(folder / str(number))) for number in range(2)]
        for node, slots in zip(nodes, (range(8192), range(8192, 16384)), strict=True):
            node.execute("CLUSTER ADDSLOTS " + " ".join(map(str, slots)))
        nodes[0].execute(f"CLUSTER MEET 127.0.0.1 {nodes[1].port}")
        deadline = time.monotonic() + _MEET_S
        while not all(_is_ready(node) for node in nodes):
            if time.monotonic() > deadline:
                raise ServerFailed("the nodes of the cluster did not meet")
            time.sleep(0.05)
        yield nodes[0], nodes[1]


@contextmanager
def _node(folder: Path) -> Iterator[Server]:
    folder.mkdir(parents=True)
    port = _with_bus()
    argv = [*_command(folder, port), "--cluster-enabled", "yes"]
    server = Server("redis", argv, folder, port, "", answers=_answers, ask=_ask)
    try:
        server.start()
        yield server
    finally:
        server.kill()


def _command(folder: Path, port: int) -> list[str]:
    options = {"bind": LOOPBACK, "port": str(port), "dir": str(folder), "save": "", "maxmemory-policy": "allkeys-lru"}
    return [str(redis_program()), *(part for name, value in options.items() for part in (f"--{name}", value))]


def _with_bus() -> int:
    """A free port of which that of the bus, by which nodes talk, is free as well: 10,000 higher, and below those that
    the kernel gives to connections.
    """
    for port in random.sample(range(20_000, 22_700), 200):
        if choose_ports(port, port + _BUS) == (port, port + _BUS):
            return port
    raise ServerFailed("no port of the first 200 is free, with its bus")


def _is_ready(node: Server) -> bool:
    [(info,)] = node.rows("CLUSTER INFO")
    return "cluster_state:ok" in str(info) and "cluster_known_nodes:2" in str(info)


def _answers(server: Server) -> bool:
    try:
        return bool(_ask(server, "PING"))
    except redis.RedisError:
        return False


def _ask(server: Server, statement: str) -> list[tuple[object, ...]]:
    with redis.Redis(server.host, server.port) as client:
        return [(client.execute_command(*statement.split()),)]
