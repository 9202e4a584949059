"""How long results take: from the time that a record carries to its result being read."""

from __future__ import annotations

import orjson
from confluent_kafka import Consumer, TopicPartition

from benchmarks.load import now_ms

_READ = 5000
_POLL_S = 0.005


def received(brokers: str, topics: list[str], member: str, warm_up_s: int, seconds: int) -> list[float]:
    """The delays, in ms, of the results in ``topics`` whose ``member``, a time in ms, lies after the warm-up.

    A read_committed reader, from now on for both spans.
    """
    reader = Consumer(
        {
            "bootstrap.servers": brokers,
            "group.id": "latency",
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 5,
            "enable.auto.commit": False,
        }
    )
    known = reader.list_topics().topics
    reader.assign([TopicPartition(topic, partition, 0) for topic in topics for partition in known[topic].partitions])
    first = now_ms() + warm_up_s * 1000
    last = first + seconds * 1000
    delays = []
    while now_ms() < last:
        messages = reader.consume(_READ, _POLL_S)
        read_ms = now_ms()
        for message in messages:
            if message.error() is None:
                sent = orjson.loads(message.value() or b"{}")[member]
                if sent >= first:
                    delays.append(read_ms - sent)
    reader.close()
    return delays
