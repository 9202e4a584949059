"""A Redis server that forgets everything when it ends: the cold tier is a cache."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from services.stack.redis_server import RedisServer
from services.stack.temporary import temporary_settings
from tests.servers.process import Server


@contextmanager
def redis_server(folder: Path) -> Iterator[Server]:
    """A running Redis, started as the stack starts it."""
    folder.mkdir(parents=True, exist_ok=True)
    launch = RedisServer().prepare(temporary_settings(folder))
    port = int(launch.endpoint.rsplit(":", 1)[1].split("/")[0])
    server = Server("redis", launch.argv, folder, port, "", answers=_answers, ask=_ask)
    try:
        server.start()
        yield server
    finally:
        server.kill()


def _answers(server: Server) -> bool:
    try:
        return bool(_ask(server, "PING"))
    except redis.RedisError:
        return False


def _ask(server: Server, statement: str) -> list[tuple[object, ...]]:
    with redis.Redis(server.host, server.port) as client:
        return [(client.execute_command(*statement.split()),)]
