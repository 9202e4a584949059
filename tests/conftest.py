"""Fixtures that every layer's tests may use."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from pyspark.sql import SparkSession
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling, LoadScopeScheduling

from dovetail.broker.address import BrokerAddress
from dovetail.broker.names import MARKS_TOPIC
from dovetail.broker.topic_shapes import TopicAdmin, TopicShape
from dovetail.runtime.settings import read_settings
from dovetail.services.jars import jar_paths
from dovetail.services.stack import Stack, temporary_stack
from dovetail.spark_jobs.runner.spark_session import start_session
from tests.left_behind import end_with_this_process
from tests.long_files import rank, scope
from tests.paths import GOLDEN
from tests.tries import tries

_TOPIC_S = 30.0
_OF_ALL_TESTS = {MARKS_TOPIC, "__consumer_offsets", "__transaction_state"}
"""Topics whose records are told apart by names that are new in each test."""
# The optimising compiler of Java takes more from runs of minutes than it gives back. Java reads this variable.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")
# How long an example takes says how busy the machine is.
settings.register_profile("dovetail", deadline=None, max_examples=tries(50))
settings.load_profile("dovetail")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden", action="store_true", help="rewrite the golden files instead of comparing with them")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Of the tests with services alone, the files that have one: importing all others takes as long as ten of them."""
    if config.getoption("markexpr") != "services" or not collection_path.match("test_*.py"):
        return None
    return None if "mark.services" in collection_path.read_text() else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that take minutes come first: of several processes, none is left alone with one of them at the end."""
    items.sort(key=lambda item: rank(item.path))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """Of the tests with services, who shares a stack is run by one process; the others have none to share."""
    if config.getoption("markexpr") != "services":
        return None
    scheduler = LoadFileScheduling(config, log)
    scheduler._split_scope = scope  # noqa: SLF001 - a subclass would have no types to extend
    return scheduler


@pytest.fixture(scope="session", autouse=True)
def _nothing_left_behind() -> None:
    """A run that is killed leaves no server, no stack and no runner."""
    end_with_this_process()


@pytest.fixture(scope="session", autouse=True)
def _no_stacks_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test finds a stack that somebody runs on this machine, and leaves no note of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _files_of_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Statements of tests may name the files that tests write."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOVETAIL_FILES_DIR", str(tmp_path_factory.getbasetemp()))
        yield


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


@pytest.fixture(autouse=True)
def _no_topics_of_other_tests(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test makes on the broker goes with the test.

    The changelog of a view goes to a topic of its name. Where that of another test's view stayed, a view of the same
    name would add to it, and the test would find the rows of both.
    """
    if {"broker", "stack"}.isdisjoint(request.fixturenames):
        yield
        return
    admin = TopicAdmin(BrokerAddress(request.getfixturevalue("broker")), _TOPIC_S)
    before = admin.partitions().keys()
    yield
    admin.delete(admin.partitions().keys() - before - _OF_ALL_TESTS)


_topic_numbers = itertools.count(1)


@pytest.fixture
def topics(broker: str, request: pytest.FixtureRequest) -> Callable[..., str]:
    """``topics("orders", partitions=2)`` creates an empty topic and gives its name, which no other test has.

    Further keywords are topic settings with ``_`` for ``.``: ``cleanup_policy="compact"``.
    """
    admin = TopicAdmin(BrokerAddress(broker), _TOPIC_S)

    def create(name: str, partitions: int = 1, **config: str) -> str:
        topic = f"{name}-{next(_topic_numbers)}"
        settings = {key.replace("_", "."): value for key, value in config.items()}
        assert admin.create(topic, TopicShape(partitions, config=settings))
        return topic

    return create
