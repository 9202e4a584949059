"""Ranges of offsets of topic partitions, read by one consumer that a Python worker keeps for all its batches."""

from __future__ import annotations

import itertools
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError, Message, TopicPartition

from dovetail.broker import clients
from dovetail.broker.address import BrokerAddress
from dovetail.broker.clients import TopicConsumer
from dovetail.broker.errors import BrokerFault, fault_of
from dovetail.broker.reader import as_records
from dovetail.changelog.errors import DovetailError, RecordsGone, ServiceUnavailable

_BATCH = 20_000
_POLL_S = 0.02
_SHORT_POLL_S = 0.002
"""A poll ends early only when it is full, so its length is what the last records of a small range wait."""
_SILENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """The records of ``topic``'s ``partition`` from offset ``start`` up to, and without, ``end``."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def length(self) -> int:
        return self.end - self.start


def shares(ranges: Iterable[OffsetRange], count: int) -> list[tuple[OffsetRange, ...]]:
    """The ranges dealt out to at most ``count`` readers, of about equal length together; none is cut in two."""
    dealt: list[list[OffsetRange]] = [[] for _ in range(count)]
    lengths = [0] * count
    for one in sorted(ranges, key=lambda one: (-one.length, one.topic, one.partition)):
        least = lengths.index(min(lengths))
        dealt[least].append(one)
        lengths[least] += one.length
    return [tuple(share) for share in dealt if share]


def read(
    brokers: BrokerAddress, ranges: Sequence[OffsetRange], headed: Collection[str] = ()
) -> Iterator[tuple[str, int, pa.Table]]:
    """The committed records of some ranges, at most one of a partition: topic, partition, some of its records in order;
    those of the topics ``headed`` with their headers.

    Raises ServiceUnavailable where the broker falls silent, RecordsGone where records of a range are no longer there.
    """
    waiting = {(one.topic, one.partition): one.end for one in ranges}
    places = frozenset(waiting)
    consumer = _consumer(brokers)
    consumer.assign([TopicPartition(one.topic, one.partition, one.start) for one in ranges])
    heard = time.monotonic()
    try:
        while waiting:
            messages = _consumed(consumer, sum(one.length for one in ranges))
            for topic, partition, of_partition in _runs(messages):
                place = topic, partition
                if place in places and place not in waiting:
                    # Beyond its end, and no sign that those of the others are on their way.
                    continue
                records, position = _records(of_partition, headed=topic in headed)
                end = waiting.get(place, 0)
                if position >= end:
                    waiting.pop(place, None)
                if (wanted := _before(records, end)).num_rows:
                    yield topic, partition, wanted
                # What is made of the records takes a time that the broker has nothing to do with.
                heard = time.monotonic()
            if waiting and time.monotonic() - heard > _SILENCE_S:
                # A partition that this consumer has lost may come with another one.
                _consumer.cache_clear()
                raise _silent(brokers, waiting)
    finally:
        consumer.unassign()


def _consumed(consumer: TopicConsumer, expected: int) -> list[Message]:
    """What is there: a small range is not waited for to become a large one."""
    if expected >= _BATCH:
        return consumer.consume(_BATCH, _POLL_S)
    return consumer.consume(_BATCH, _SHORT_POLL_S)


def _runs(messages: list[Message]) -> Iterator[tuple[str, int, list[Message]]]:
    """Topic, partition, and those of its messages that lie together."""
    places = zip(map(Message.topic, messages), map(Message.partition, messages), strict=True)
    start = 0
    for (topic, partition), run in itertools.groupby(places):
        end = start + len(list(run))
        yield topic or "", partition or 0, messages[start:end]
        start = end


def _records(messages: list[Message], *, headed: bool) -> tuple[pa.Table, int]:
    """The records among messages of one partition, and the offset that follows them.

    The last offsets of a range may be the marks of transactions, which no reader sees: then the notice that the
    partition is read to its end is what tells.
    """
    position = 0
    errors = list(map(Message.error, messages))
    # By their truth: an error that is compared with None leaves an exception behind.
    if any(errors):
        for notice, error in zip(messages, errors, strict=True):
            if error is not None:
                if fault_of(error) is not BrokerFault.END_OF_PARTITION:
                    raise _unreadable(notice, error)
                position = notice.offset() or 0
        messages = [message for message, error in zip(messages, errors, strict=True) if error is None]
    if messages:
        position = max(position, (messages[-1].offset() or 0) + 1)
    return as_records(messages, headed=headed), position


def _before(records: pa.Table, end: int) -> pa.Table:
    """The records before the offset ``end``: they lie in order."""
    return records.slice(0, int(np.searchsorted(records.column("offset").to_numpy(), end)))


@lru_cache(maxsize=4)
def _consumer(brokers: BrokerAddress) -> TopicConsumer:
    """Never joins its group: partitions are assigned by hand, and offsets stand in Spark's checkpoint."""
    settings = {
        # Records that are gone are an error; skipping them would lose them silently.
        "auto.offset.reset": "error",
        # An input may be the output of another query: what its transaction took back must not be read.
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 10,
        # What is fetched beyond a range is thrown away: little in advance, and no second's rest once that is there.
        "fetch.message.max.bytes": 1 << 20,
        "queued.min.messages": _BATCH,
        "fetch.queue.backoff.ms": 5,
        **clients.QUICK_RETURN,
    }
    return clients.consumer(brokers, "dovetail-spark", settings)


def _silent(brokers: BrokerAddress, waiting: Iterable[tuple[str, int]]) -> ServiceUnavailable:
    return ServiceUnavailable(
        f"Kafka gave no record for {_SILENCE_S:g} s",
        where=f"brokers {brokers}, {', '.join(f'{topic}[{partition}]' for topic, partition in waiting)}",
        fix="start the broker; the query resumes where it stopped",
    )


def _unreadable(message: Message, error: KafkaError) -> DovetailError:
    place = f"{message.topic()}[{message.partition()}]"
    if fault_of(error) is BrokerFault.RECORDS_GONE:
        return RecordsGone(
            f"records of {place} are gone that the query has not read yet: {error.str()}",
            fix="give the topic a longer retention; to go on without them, drop the query and create it again",
        )
    return ServiceUnavailable(f"{place} cannot be read: {error.str()}", fix="dovetail status shows what runs")
