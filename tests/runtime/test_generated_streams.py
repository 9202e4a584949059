"""Generated streams against a real broker: no row twice and none left out, whoever is killed when."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dovetail.broker.address import BrokerAddress
from dovetail.broker.topic_shapes import TopicAdmin, TopicShape
from dovetail.broker.topics import PartitionOffsets
from dovetail.runtime.generated_streams import GeneratedStreams
from dovetail.sql.catalog import Actual, Catalog, Desired, Query
from dovetail.sql.engines import Engine
from dovetail.sql.syntax.parse import parse_one
from dovetail.sql.syntax.statements import CreateStream
from tests.spark.kafka import messages

pytestmark = pytest.mark.services
_PATIENCE_S = 60.0
_ALL = 6000
_PROCESS = """
import sys, time
from dovetail.broker.address import BrokerAddress
from dovetail.runtime.generated_streams import GeneratedStreams
from dovetail.sql.catalog import Catalog
streams = GeneratedStreams(Catalog.open(sys.argv[1]), BrokerAddress(sys.argv[2]))
while True:
    streams.look()
    time.sleep(0.05)
"""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/catalog"


@pytest.fixture
def catalog(url: str) -> Iterator[Catalog]:
    catalog = Catalog.open(url)
    yield catalog
    catalog.close()


@pytest.fixture
def streams(catalog: Catalog, broker: str) -> Iterator[GeneratedStreams]:
    made = GeneratedStreams(catalog, BrokerAddress(broker))
    yield made
    made.stop()


def generated(catalog: Catalog, topic: str, options: str) -> Query:
    text = f"CREATE TABLE s (n bigint) WITH (connector = 'datagen', topic = '{topic}', {options})"
    statement = parse_one(text)
    assert isinstance(statement, CreateStream)
    query = Query("s", sql=text, plan="", fingerprint="", topic=topic, engine=Engine.DATAGEN.value)
    _, made = catalog.create(statement, now_ms=0, query=query)
    assert made is not None
    return made


def until(streams: GeneratedStreams, catalog: Catalog, holds: Callable[[Query], bool]) -> Query:
    end_s = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end_s:
        streams.look()
        if holds(query := catalog.query("s")):
            return query
        time.sleep(0.05)
    raise AssertionError(catalog.query("s"))


def numbers(broker: str, topic: str) -> list[int]:
    return sorted(json.loads(message.value() or b"")["n"] for message in messages(broker, topic))


def rows_of(query: Query) -> int:
    return int(query.progress.get("counts", {}).get("rows_out", 0))


def test_a_process_that_is_killed_again_and_again_writes_each_row_once(
    broker: str, catalog: Catalog, url: str, topics: Callable[..., str]
) -> None:
    topic = topics("generated", partitions=3)
    generated(catalog, topic, "fields.n.kind = 'sequence', fields.n.end = 5999, datagen.rows.per.second = 1500")
    admin = TopicAdmin(BrokerAddress(broker), _PATIENCE_S)
    written = 0
    for kill in range(30):
        ends = admin.ends(topic)
        process = subprocess.Popen([sys.executable, "-c", _PROCESS, url, broker])
        await_other_ends(admin, topic, ends)
        time.sleep(0.2 * (kill % 7))
        process.send_signal(signal.SIGKILL)
        process.wait()
        found = numbers(broker, topic)
        assert found == list(range(len(found)))
        assert len(found) >= written
        written = len(found)
        if written == _ALL:
            break
    assert written == _ALL
    assert kill > 2


def await_other_ends(admin: TopicAdmin, topic: str, ends: PartitionOffsets) -> None:
    end_s = time.monotonic() + _PATIENCE_S
    while admin.ends(topic) == ends:
        assert time.monotonic() < end_s
        time.sleep(0.02)


def test_it_pauses_goes_on_and_takes_another_definition(
    broker: str, catalog: Catalog, streams: GeneratedStreams, topics: Callable[..., str]
) -> None:
    topic = topics("generated")
    query = generated(catalog, topic, "fields.n.kind = 'sequence', datagen.rows.per.second = 200")
    until(streams, catalog, lambda one: one.actual is Actual.RUNNING and rows_of(one) > 50)

    catalog.want("s", Desired.PAUSED, now_ms=0)
    paused = rows_of(until(streams, catalog, lambda one: one.actual is Actual.PAUSED))
    assert numbers(broker, topic) == list(range(paused))

    relation = catalog.get("s")
    catalog.redefine(relation, relation.ddl.replace("'sequence'", "'sequence', fields.n.start = 1000000"))
    catalog.want("s", Desired.RUNNING, now_ms=0)
    until(streams, catalog, lambda one: one.actual is Actual.RUNNING and rows_of(one) > paused + 50)
    catalog.redefine(catalog.get("s"), relation.ddl)
    until(streams, catalog, lambda one: rows_of(one) > paused + 200)
    streams.stop()
    assert catalog.query("s").actual is Actual.STOPPED

    found = numbers(broker, topic)
    assert len(found) == rows_of(catalog.query("s"))
    assert [number % 1_000_000 for number in sorted(found, key=lambda one: one % 1_000_000)] == list(range(len(found)))
    assert query.id == catalog.query("s").id


def test_a_topic_that_is_gone_is_said_and_the_last_row_ends_it(
    broker: str, catalog: Catalog, streams: GeneratedStreams
) -> None:
    admin = TopicAdmin(BrokerAddress(broker), _PATIENCE_S)
    admin.create("comes-and-goes", TopicShape(partitions=2))
    generated(catalog, "comes-and-goes", "'number-of-rows' = 3000, datagen.rows.per.second = 100")
    before = until(streams, catalog, lambda one: one.actual is Actual.RUNNING and rows_of(one) > 20)

    admin.delete(["comes-and-goes"])
    gone = until(streams, catalog, lambda one: one.actual is Actual.RECOVERING)
    assert 'the output topic "comes-and-goes" is gone' in gone.error

    admin.create("comes-and-goes", TopicShape(partitions=2))
    catalog.redefine(catalog.get("s"), catalog.get("s").ddl.replace("per.second = 100", "per.second = 9000"))
    until(streams, catalog, lambda one: one.actual is Actual.RUNNING and rows_of(one) == 3000)
    time.sleep(0.5)
    streams.look()
    assert rows_of(catalog.query("s")) == 3000
    assert 0 < len(messages(broker, "comes-and-goes")) <= 3000 - rows_of(before)


def test_a_dropped_one_is_forgotten(
    catalog: Catalog, streams: GeneratedStreams, broker: str, topics: Callable[..., str]
) -> None:
    topic = topics("generated")
    generated(catalog, topic, "datagen.rows.per.second = 100")
    until(streams, catalog, lambda one: one.actual is Actual.RUNNING)
    catalog.want("s", Desired.DROPPED, now_ms=0)
    end_s = time.monotonic() + _PATIENCE_S
    while catalog.queries(dropped=True):
        assert time.monotonic() < end_s
        streams.look()
        time.sleep(0.05)
    before = numbers(broker, topic)
    time.sleep(0.5)
    assert numbers(broker, topic) == before
