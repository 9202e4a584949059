"""Records into a topic: all of them or none, as a reader of committed records sees it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, TopicPartition

from dovetail.broker.address import BrokerAddress
from dovetail.broker.topic_shapes import TopicAdmin
from dovetail.broker.topic_writer import TopicWriter
from dovetail.changelog.encode import Encoded
from dovetail.changelog.errors import ServiceUnavailable

pytestmark = pytest.mark.services

COUNT = 50_000
TOO_LARGE = b"x" * 2_000_000


def committed(broker: str, topic: str) -> int:
    """How many records a reader of committed ones finds."""
    reader = Consumer(
        {
            "bootstrap.servers": broker,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    reader.assign([TopicPartition(topic, 0, 0)])
    found = 0
    while (record := reader.poll(10)) is not None and record.error() is None:
        found += 1
    reader.close()
    return found


def test_all_records_are_there_at_once(broker: str, topics: Callable[..., str]) -> None:
    topic, writer = topics("whole"), TopicWriter(BrokerAddress(broker), 10)
    writer.write_whole(topic, Encoded.of([None] * COUNT, [b"{}"] * COUNT))
    writer.write_whole(topic, Encoded.of([None], [b"{}"]))
    assert committed(broker, topic) == COUNT + 1


def test_more_than_the_queue_holds(broker: str, topics: Callable[..., str]) -> None:
    topic, writer = topics("many"), TopicWriter(BrokerAddress(broker), 30)
    count = 2_500_000
    assert writer.write_whole(topic, Encoded.of([None] * count, [b"{}"] * count)) == {0: count}


@pytest.mark.parametrize("before", [1, COUNT])
def test_one_that_is_refused_takes_the_others_along(broker: str, topics: Callable[..., str], before: int) -> None:
    topic, writer = topics("none"), TopicWriter(BrokerAddress(broker), 10)
    with pytest.raises(ServiceUnavailable, match="refuses a record"):
        writer.write_whole(topic, Encoded.of([None] * (before + 1), [*[b"{}"] * before, TOO_LARGE]))
    assert committed(broker, topic) == 0
    # The next ones do not wait for what has failed.
    writer.write_whole(topic, Encoded.of([None], [b"{}"]))
    assert committed(broker, topic) == 1
    assert TopicAdmin(BrokerAddress(broker), 10).quiescent_ends(topic)[0] > 0


def test_a_broker_that_is_away_is_told() -> None:
    with pytest.raises(ServiceUnavailable, match=r"Kafka does not answer within 0\.5 s"):
        TopicWriter(BrokerAddress("127.0.0.1:1"), 0.5).write_whole("t", Encoded.of([None], [b"{}"]))
