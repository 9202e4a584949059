"""Fixtures that every room's tests may use."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from runtime.settings import read_settings
from services.jars import jar_paths
from services.stack import Stack, temporary_stack
from spark_jobs.runner.spark_session import start_session
from tests.paths import GOLDEN


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden", action="store_true", help="rewrite the golden files instead of comparing with them")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """``golden("explain/inner.txt", text)`` holds a text against tests/golden; ``make golden`` rewrites the file."""

    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert text == path.read_text()

    return compare


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A running stack with a real broker, one for all tests."""
    with temporary_stack(tmp_path_factory.mktemp("stack"), components=("kafka",)) as running:
        yield running


@pytest.fixture(scope="session")
def broker(stack: Stack) -> str:
    """The bootstrap address of a real broker, one for all tests."""
    return stack.endpoint("kafka")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A Spark session on two cores: there is one in a process, so it serves all tests."""
    session = start_session("tests", jar_paths(read_settings(), "spark"), "local[2]", polling_delay_ms=20)
    yield session
    session.stop()


_topic_numbers = itertools.count(1)


@pytest.fixture
def topics(broker: str, request: pytest.FixtureRequest) -> Callable[..., str]:
    """``topics("orders", partitions=2)`` creates an empty topic and gives its name, which no other test has.

    Further keywords are topic settings with ``_`` for ``.``: ``cleanup_policy="compact"``.
    """
    admin = AdminClient({"bootstrap.servers": broker, "log_level": 0})

    def create(name: str, partitions: int = 1, **config: str) -> str:
        topic = f"{name}-{next(_topic_numbers)}"
        settings = {key.replace("_", "."): value for key, value in config.items()}
        created = admin.create_topics([NewTopic(topic, partitions, 1, config=settings)])
        created[topic].result()
        return topic

    return create
