"""Connections to Redis, with limits of our own."""

from __future__ import annotations

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

_CONNECTIONS = 32
_READ_BYTES = 1 << 20


def open_redis(url: str, timeout_ms: int) -> redis.Redis:
    """A client that connects at its first command, and never retries: redis-py would hold a batch for a minute."""
    timeout_s = timeout_ms / 1000
    pool = redis.BlockingConnectionPool.from_url(
        url,
        max_connections=_CONNECTIONS,
        timeout=timeout_s,
        socket_timeout=timeout_s,
        socket_connect_timeout=timeout_s,
        retry=Retry(NoBackoff(), 0),
        socket_read_size=_READ_BYTES,
        protocol=2,
    )
    return redis.Redis(connection_pool=pool)
