"""What a transactional producer has to send: many messages at a call, in order, none dropped without a word."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from confluent_kafka import KafkaError, Message, TopicPartition

from dovetail.broker import columns
from dovetail.broker.clients import TopicProducer
from dovetail.broker.errors import BrokerError, BrokerFault, broker_errors
from dovetail.changelog.encode import Encoded

OutgoingMessage = dict[str, Any]
"""``key``, ``value``, and where needed ``headers``."""

QUEUE_BYTES = 1 << 30
"""So much waits to be sent, at most."""
OVERHEAD_BYTES = 600
"""What a message takes in the producer's queue besides its value."""
_BY_KEY = -1
"""librdkafka's RD_KAFKA_PARTITION_UA."""
_CHUNK = 20_000
_CHUNK_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Some messages for one topic."""

    topic: str
    messages: list[OutgoingMessage]
    with_headers: bool = False
    """``produce_batch`` takes no headers."""
    partition: int = _BY_KEY
    """For all of them; else it goes by their keys. ``produce_batch`` passes over a message's own without a word."""
    delivered: Callable[[int], None] | None = None
    """Is given the offset of each, once it is there; what fails is told by the commit."""


@dataclass(frozen=True, slots=True)
class OutgoingRecords:
    """Records for one topic, without headers: of columns, which become messages without an object for each."""

    topic: str
    records: Encoded
    partition: int = _BY_KEY
    """For all of them; else it goes by their keys."""

    def chunks(self) -> Iterator[tuple[Encoded, int]]:
        """The records in pieces that are queued at once, and the bytes that each takes in the queue."""
        ends = np.cumsum(self.records.sizes() + OVERHEAD_BYTES)
        start, before = 0, 0
        while start < len(ends):
            fitting = int(np.searchsorted(ends, before + _CHUNK_BYTES, side="right"))
            end = min(max(fitting, start + 1), start + _CHUNK)
            yield self.records.slice(start, end - start), int(ends[end - 1]) - before
            start, before = end, int(ends[end - 1])

    def as_messages(self) -> Outgoing:
        """The same, an object for each."""
        pairs = zip(self.records.keys, self.records.values, strict=True)
        return Outgoing(self.topic, [{"key": key, "value": value} for key, value in pairs], partition=self.partition)


def refusal(messages: Sequence[OutgoingMessage], taken: int) -> BrokerError | None:
    """Why ``produce_batch`` took only so many of the messages: it raises nothing, and calls nobody back."""
    if taken == len(messages):
        return None
    return BrokerError.of(next(message["_error"] for message in messages if "_error" in message))


class ProducerQueue:
    """The queue of a producer. It never gets full: a full one refuses a message and takes the next one."""

    def __init__(self, producer: TopicProducer, call_s: float) -> None:
        self._producer = producer
        self._call_s = call_s
        self._queued_bytes = 0

    def send(self, part: Outgoing | OutgoingRecords) -> None:
        """Raises BrokerError for a message that is refused; the transaction has to be aborted then."""
        if isinstance(part, Outgoing):
            self._send_messages(part)
        elif (rdkafka := columns.library()) is None:
            self._send_messages(part.as_messages())
        else:
            for records, size in part.chunks():
                self._make_room(size)
                columns.produce(rdkafka, self._producer, part.topic, records, part.partition)
                self._producer.poll(0)

    def _send_messages(self, part: Outgoing) -> None:
        on_delivery = None if part.delivered is None else _offsets_to(part.delivered)
        for start in range(0, len(part.messages), _CHUNK):
            chunk = part.messages[start : start + _CHUNK]
            size = sum([OVERHEAD_BYTES + len(message["value"] or b"") for message in chunk])
            self._make_room(size)
            if part.with_headers:
                with broker_errors():
                    for message in chunk:
                        self._producer.produce(part.topic, partition=part.partition, **message)
            else:
                taken = self._producer.produce_batch(part.topic, chunk, part.partition, on_delivery=on_delivery)
                if refused := refusal(chunk, taken):
                    raise refused
            self._producer.poll(0)

    def send_offset(self, group: object, topic: str, partition: int, offset: int, metadata: str = "") -> None:
        """Commit ``offset`` with the transaction, for a ``group`` or a member of it."""
        place = TopicPartition(topic, partition, offset, metadata)
        self._producer.send_offsets_to_transaction([place], group, self._call_s)

    def _make_room(self, size: int) -> None:
        if self._queued_bytes + size > QUEUE_BYTES:
            self.sent()
        self._queued_bytes += size

    def emptied(self) -> None:
        """The transaction is committed, so nothing waits."""
        self._queued_bytes = 0

    def sent(self) -> None:
        """Wait until all that is queued is sent, as long as the broker takes some of it in the time of a call."""
        left = len(self._producer)
        while left:
            before, left = left, self._producer.flush(self._call_s)
            if left >= before:
                raise BrokerError("the queue of messages was not sent in time", BrokerFault.TIMED_OUT)
        self._queued_bytes = 0


def _offsets_to(report: Callable[[int], None]) -> Callable[[KafkaError | None, Message], None]:
    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is None:
            report(message.offset() or 0)

    return delivered
