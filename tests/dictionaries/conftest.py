"""A Redis for the tests of one module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from services.stack import temporary_stack


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with temporary_stack(tmp_path_factory.mktemp("redis"), components=("redis",)) as running:
        yield running.endpoint("redis")
