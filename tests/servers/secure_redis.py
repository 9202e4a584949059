"""Redis that speaks TLS, and asks who its clients are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from dovetail.services.stack.free_ports import choose_ports
from tests.servers.certificates import CLIENT, write_certificates
from tests.servers.process import PASSWORD, Server, program

USER = CLIENT
RIGHTS = "~shop:* &shop:* +@read +@write +@scripting +@pubsub +@connection +time"
"""What a user needs where the PATH of the dictionaries is 'shop'."""
_USERS = f"""\
user default off
user {USER} on >{PASSWORD} {RIGHTS}
user poor on >{PASSWORD} ~* &* +@connection
user root on >{PASSWORD} ~* &* +@all
"""


@dataclass(frozen=True)
class SecureRedis:
    """Ports of servers that differ in their certificate; ``shown`` asks for one, ``plain`` speaks no TLS."""

    server: int
    expired: int
    foreign: int
    shown: int
    plain: int
    folder: Path

    def url(self, port: int, *, ca: str = "ca", password: str = PASSWORD, user: str = USER, more: str = "") -> str:
        trusted = f"?ssl_ca_certs={self.folder / ca}.pem" if ca else ""
        return f"rediss://{user}:{password}@127.0.0.1:{port}/0{trusted}{more}"

    def show(self, port: int, name: str) -> None:
        """Let a server show another of the certificates."""
        with redis.Redis.from_url(self.url(port, user="root", more="&ssl_cert_reqs=none")) as client:
            client.config_set("tls-cert-file", f"{name}.pem", "tls-key-file", f"{name}.key")

    @property
    def certificate(self) -> str:
        """As options of an address."""
        return f"&ssl_certfile={self.folder}/client.pem&ssl_keyfile={self.folder}/client.key"


@contextmanager
def secure_redis(folder: Path) -> Iterator[SecureRedis]:
    """Running ones."""
    write_certificates(folder)
    (folder / "users.acl").write_text(_USERS)
    server, expired, foreign, shown, plain_port = choose_ports(*[0] * 5)
    made = SecureRedis(server, expired, foreign, shown, plain_port, folder)
    with ExitStack() as stack:
        for port, name, asks in (
            (made.server, "server", "no"),
            (made.expired, "expired", "no"),
            (made.foreign, "foreign", "no"),
            (made.shown, "server", "yes"),
        ):
            options = {"port": "0", "tls-port": str(port), "tls-auth-clients": asks, "save": ""}
            files = {"tls-cert-file": f"{name}.pem", "tls-key-file": f"{name}.key", "tls-ca-cert-file": "ca.pem"}
            stack.enter_context(_running(folder, port, options | files | {"aclfile": "users.acl"}))
        plain = {"port": str(made.plain), "save": "", "aclfile": "users.acl"}
        stack.enter_context(_running(folder, made.plain, plain))
        yield made


@contextmanager
def _running(folder: Path, port: int, options: dict[str, str]) -> Iterator[Server]:
    argv = [program("redis-server", package="redis-server")]
    argv += [part for name, value in options.items() for part in (f"--{name}", value)]
    secure = "tls-port" in options

    def ask(server: Server, statement: str) -> list[tuple[object, ...]]:
        shown: dict[str, Any] = {
            "ssl": True,
            "ssl_check_hostname": False,
            "ssl_cert_reqs": "none",
            "ssl_certfile": f"{folder}/client.pem",
            "ssl_keyfile": f"{folder}/client.key",
        }
        given: dict[str, Any] = {"username": USER, "password": PASSWORD} | (shown if secure else {})
        with redis.Redis(server.host, server.port, **given) as client:
            return [(client.execute_command(*statement.split()),)]

    def answers(server: Server) -> bool:
        try:
            return bool(ask(server, "PING"))
        except redis.RedisError:
            return False

    running = Server("redis", argv, folder, port, USER, answers=answers, ask=ask)
    try:
        running.start()
        yield running
    finally:
        running.kill()
