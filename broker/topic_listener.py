"""What comes to a topic from now on, for somebody who keeps no offsets."""

from __future__ import annotations

from confluent_kafka import TopicPartition

from dovetail.broker import clients
from dovetail.broker.address import BrokerAddress
from dovetail.broker.topics import PartitionOffsets


class TopicListener:
    """The values of the records of ``topic`` behind ``ends``. The notice of a fault is no record: it may pass.

    group    a name for the broker's logs: it is never joined
    wait_ms  how long the broker holds back a request that it has nothing for
    """

    def __init__(self, brokers: BrokerAddress, topic: str, ends: PartitionOffsets, *, group: str, wait_ms: int) -> None:
        self._consumer = clients.consumer(brokers, group, {"fetch.wait.max.ms": wait_ms})
        self._consumer.assign([TopicPartition(topic, partition, offset) for partition, offset in ends.items()])

    def values(self, most: int, wait_s: float) -> list[bytes]:
        """Up to ``most`` values, once there are so many or the time is over."""
        return [message.value() or b"" for message in self._consumer.consume(most, wait_s) if message.error() is None]

    def close(self) -> None:
        self._consumer.close()
