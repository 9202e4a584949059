"""The consumer groups of a topic: those that have committed offsets of it, without the groups of queries."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import TopicPartition

from dovetail.broker import clients
from dovetail.broker.address import BrokerAddress
from dovetail.broker.consumer_groups import groups_of

pytestmark = pytest.mark.services


def committed(broker: str, group: str, *places: TopicPartition) -> None:
    consumer = clients.consumer(BrokerAddress(broker), group, {})
    consumer.commit(offsets=list(places), asynchronous=False)
    consumer.close()


def test_groups_are_those_that_have_committed_offsets_of_the_topic(broker: str, topics: Callable[..., str]) -> None:
    read, other = topics("read", partitions=2), topics("other")
    client = clients.admin(BrokerAddress(broker))
    committed(broker, "nightly", TopicPartition(read, 0, 3), TopicPartition(read, 1, 0), TopicPartition(other, 0, 5))
    committed(broker, "hourly", TopicPartition(read, 1, 7))
    committed(broker, "elsewhere", TopicPartition(other, 0, 1))
    committed(broker, "dovetail.view.0123", TopicPartition(read, 0, 1))
    assert groups_of(client, read, 10.0) == {"hourly": {1: 7}, "nightly": {0: 3, 1: 0}}
    assert groups_of(client, topics("unread"), 10.0) == {}
