"""A Redis for the tests of one module, empty for each of them, and what its cache is filled from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis

from services.stack import temporary_stack
from tests.dictionaries.cache_world import FakeSource


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with temporary_stack(tmp_path_factory.mktemp("redis"), components=("redis",)) as running:
        yield running.endpoint("redis")


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
