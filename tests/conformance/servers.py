"""The external servers of a run: started when the first case needs one, gone at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import sqlalchemy as sa
from clickhouse_driver import Client

from dovetail.services.stack.stack import Stack
from tests.conformance.case import Case
from tests.conformance.external import ClickHouseDatabase, Database, SqlDatabase
from tests.servers import Server, clickhouse, mariadb

_DATABASE = "shop"
"""Made by the servers of the tests."""


@dataclass
class Servers:
    """``databases``: by the kind of source that a case names."""

    folder: Path
    redis_url: str
    databases: dict[str, Database] = field(default_factory=dict)
    _stack: ExitStack = field(default_factory=ExitStack)

    def start_for(self, cases: Iterable[Case]) -> None:
        """Start what the cases need and does not run yet. They end with the thread that calls this."""
        for kind in sorted({kind for case in cases for kind in _needed(case)} - self.databases.keys()):
            start, made = _KINDS[kind]
            self.databases[kind] = made(self._stack.enter_context(start(self.folder / kind)))

    def close(self) -> None:
        self._stack.close()


def _needed(case: Case) -> Iterator[str]:
    if case.lookup_tables:
        yield "mysql"
    for statement in case.ddl:
        yield from (kind for kind in _KINDS if f"SOURCE({kind.upper()}" in statement)


def _mysql(server: Server) -> Database:
    url = sa.URL.create("mysql+pymysql", server.user, server.password, server.host, server.port, _DATABASE)
    return SqlDatabase("mysql", _parameters(server), sa.create_engine(url))


def _clickhouse(server: Server) -> Database:
    def execute(*statement: object) -> object:
        with Client(server.host, server.port, user=server.user, password=server.password, database=_DATABASE) as client:
            return client.execute(*statement)

    return ClickHouseDatabase(_parameters(server), execute)


def _parameters(server: Server) -> dict[str, object]:
    return {
        "host": server.host,
        "port": server.port,
        "user": server.user,
        "password": server.password,
        "db": _DATABASE,
    }


_KINDS: Mapping[str, tuple[Callable[[Path], AbstractContextManager[Server]], Callable[[Server], Database]]] = {
    "mysql": (mariadb, _mysql),
    "clickhouse": (clickhouse, _clickhouse),
}


def redis_url(stack: Stack) -> str:
    """The address of the Redis of a running stack, with its password."""
    url = stack.connected_settings().redis_url
    assert url is not None
    return url.get_secret_value()


@contextmanager
def own_servers(folder: Path, redis_url: str) -> Iterator[Servers]:
    servers = Servers(folder, redis_url)
    try:
        yield servers
    finally:
        servers.close()
