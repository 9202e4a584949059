"""Records in and out, as any client of the broker writes and reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import orjson
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from dovetail.broker import clients
from dovetail.broker.address import BrokerAddress
from dovetail.broker.topic_shapes import TopicAdmin, TopicShape

Value = dict[str, object] | bytes | None
_OPEN_S = 10.0
_MAKE_S = 30.0


def send(
    brokers: str, topic: str, values: Iterable[Value], keys: Iterable[Value] = (), times_ms: Iterable[int] = ()
) -> None:
    """Records in order; a dict is written as JSON. Without a time of its own a record has that of its sending."""
    producer = Producer({"bootstrap.servers": brokers, "linger.ms": 20, "partitioner": "murmur2_random"})
    all_keys, all_times = iter(keys), iter(times_ms)
    for value in values:
        key, time_ms = _bytes(next(all_keys, None)), next(all_times, 0)
        producer.produce(topic, value=_bytes(value), key=key, timestamp=time_ms)
    assert producer.flush(30) == 0


def _bytes(value: Value) -> bytes | None:
    return orjson.dumps(value) if isinstance(value, dict) else value


def made_again(brokers: str, topic: str, partitions: int = 1) -> None:
    """Delete a topic, and make another one of its name."""
    admin = TopicAdmin(BrokerAddress(brokers), _MAKE_S)
    admin.delete([topic])
    assert admin.create(topic, TopicShape(partitions))


def trim(brokers: str, topic: str, first: int) -> None:
    """Delete the records of partition 0 before the offset ``first``."""
    client = clients.admin(BrokerAddress(brokers))
    place = TopicPartition(topic, 0, first)
    client.delete_records([place])[place].result(30)


def messages(brokers: str, topic: str) -> list[Message]:
    """All of a topic, as a read_committed reader sees it now."""
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "reader", "enable.partition.eof": True})
    # A commit is answered before its records can be read; a transaction that stays open is not waited for.
    ends = TopicAdmin(BrokerAddress(brokers), _OPEN_S).quiescent_ends(topic)
    consumer.assign([TopicPartition(topic, partition, 0) for partition in ends])
    found: list[Message] = []
    open_partitions = {partition for partition, end in ends.items() if end}
    while open_partitions:
        message = consumer.poll(10)
        assert message is not None, f"{topic} was not read to its end"
        error = message.error()
        if error is None:
            found.append(message)
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
            open_partitions.discard(message.partition())
        # Anything else passes, such as a connection that was lost; or the next poll says that nothing comes.
    consumer.close()
    return found


def values(brokers: str, topic: str) -> list[dict[str, object]]:
    """The values of all records, in the order of offsets per partition."""
    return [orjson.loads(message.value() or b"null") for message in messages(brokers, topic)]


def multiset(rows: Iterable[dict[str, object]]) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row.values()) for row in rows)


def records(found: Sequence[Message]) -> pa.Table:
    """The messages as a decoder takes them."""
    return pa.table(
        {
            "key": pa.array([message.key() for message in found], pa.binary()),
            "value": pa.array([message.value() for message in found], pa.binary()),
            "timestamp": pa.array([message.timestamp()[1] for message in found], pa.timestamp("ms", "UTC")),
            "partition": pa.array([message.partition() for message in found], pa.int32()),
            "offset": pa.array([message.offset() for message in found], pa.int64()),
        }
    )
