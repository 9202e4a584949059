"""A Redis for the tests of one module, empty for each of them, and what its cache is filled from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from tests.dictionaries.cache_world import FakeSource
from tests.servers import redis_server


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with redis_server(tmp_path_factory.mktemp("redis")) as server:
        yield f"redis://{server.host}:{server.port}/0"


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
        yield client


@pytest.fixture
def source() -> FakeSource:
    source = FakeSource()
    source.put(a="pen", b="ink", c="cap")
    return source
