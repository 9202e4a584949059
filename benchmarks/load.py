"""Generated topics: the same rows for every contender, made in columns from a fixed seed."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from dovetail.changelog.changes import Changes
from dovetail.changelog.encode import encode

PIECE = 50_000


def create_topics(brokers: str, names: list[str], partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": brokers})
    for future in admin.create_topics([NewTopic(name, partitions, 1) for name in names]).values():
        future.result()


def side(rows: int, keys: int, seed: int, first_column: str) -> Iterator[pa.Table]:
    """``rows`` rows of about 80 bytes as JSON, over ``keys`` uniform keys, in pieces."""
    random = np.random.default_rng(seed)
    for start in range(0, rows, PIECE):
        count = min(PIECE, rows - start)
        key = random.integers(0, keys, count)
        yield pa.table(
            {
                "k": pa.array(key, pa.int64()),
                "name": pa.array(np.char.add("customer-", key.astype(str)).astype(object), pa.string()),
                first_column: pa.array(np.round(random.random(count) * 1000, 2), pa.float64()),
                "ts": pa.array(np.arange(start, start + count), pa.int64()),
            }
        )


TIMES = "__ms"
"""A column that is no member of the records, but their timestamps, in ms."""


def produce(brokers: str, topic: str, pieces: Iterator[pa.Table], partitions: int) -> int:
    """The pieces as JSON records without a key, spread over the partitions; the number of bytes."""
    producer = Producer(
        {
            "bootstrap.servers": brokers,
            "linger.ms": 20,
            "compression.type": "lz4",
            "queue.buffering.max.messages": 2_000_000,
        }
    )
    size = 0
    for piece in pieces:
        members = [name for name in piece.column_names if name != TIMES]
        encoded = encode(Changes.of(piece.select(members)).table, tuple(members), (), updating=False)
        times = piece.column(TIMES).to_pylist() if TIMES in piece.column_names else [0] * piece.num_rows
        for position, (value, ms) in enumerate(zip(encoded.values, times, strict=True)):
            producer.produce(topic, value, partition=position % partitions, timestamp=ms)
            size += len(value or b"")
        producer.flush()
    return size


def committed_rows(brokers: str, topic: str) -> int:
    """How many records a read_committed reader sees."""
    reader = Consumer(
        {
            "bootstrap.servers": brokers,
            "group.id": "benchmark",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    partitions = list(reader.list_topics(topic).topics[topic].partitions)
    reader.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    count, ended = 0, 0
    while ended < len(partitions):
        for message in reader.consume(100_000, 1.0):
            if message.error() is None:
                count += 1
            else:
                ended += 1
    reader.close()
    return count


def now_ms() -> float:
    return time.time() * 1000
