"""A consumer that follows a topic from given offsets on, outside of any group."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import Consumer, TopicPartition

from broker import clients
from broker.address import BrokerAddress


def following(brokers: BrokerAddress, topic: str, offsets: Mapping[int, int], *, group: str, reset: str) -> Consumer:
    """Reads committed records, partition by partition from ``offsets`` on, and tells where a partition ends.

    group   a name for the broker's logs: it is never joined
    reset   what happens where the record at an offset is gone: ``earliest``, or ``error``
    """
    settings = {
        "auto.offset.reset": reset,
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 100,
        "fetch.error.backoff.ms": 50,
    }
    consumer = clients.consumer(brokers, group, settings)
    consumer.assign([TopicPartition(topic, partition, offset) for partition, offset in offsets.items()])
    return consumer
