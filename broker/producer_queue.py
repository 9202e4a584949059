"""What a transactional producer has to send: many messages at a call, in order, none dropped without a word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

OutgoingMessage = dict[str, Any]
"""``key``, ``value``, and where needed ``headers`` or ``callback``."""

QUEUE_BYTES = 1 << 30
"""So much waits to be sent, at most."""
OVERHEAD_BYTES = 600
"""What a message takes in the producer's queue besides its value."""
_BY_KEY = -1
"""librdkafka's RD_KAFKA_PARTITION_UA."""
_CHUNK = 20_000
# The library's own errors, as against those of the broker, are named with an underscore, but public.
_TIMED_OUT = KafkaError._TIMED_OUT  # noqa: SLF001


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Some messages for one topic."""

    topic: str
    messages: list[OutgoingMessage]
    with_headers: bool = False
    """``produce_batch`` takes no headers."""
    partition: int = _BY_KEY
    """For all of them; else it goes by their keys. ``produce_batch`` passes over a message's own without a word."""


def refusal(messages: Sequence[OutgoingMessage], taken: int) -> KafkaError | None:
    """Why ``produce_batch`` took only so many of the messages: it raises nothing, and calls nobody back."""
    return None if taken == len(messages) else next(message["_error"] for message in messages if "_error" in message)


class ProducerQueue:
    """The queue of a producer. It never gets full: a full one refuses a message and takes the next one."""

    def __init__(self, producer: Producer, call_s: float) -> None:
        self._producer = producer
        self._call_s = call_s
        self._queued_bytes = 0

    def send(self, part: Outgoing) -> None:
        """Raises KafkaException for a message that is refused; the transaction has to be aborted then."""
        for start in range(0, len(part.messages), _CHUNK):
            chunk = part.messages[start : start + _CHUNK]
            size = sum([OVERHEAD_BYTES + len(message["value"] or b"") for message in chunk])
            if self._queued_bytes + size > QUEUE_BYTES:
                self._flush()
            self._queued_bytes += size
            if part.with_headers:
                for message in chunk:
                    self._producer.produce(part.topic, partition=part.partition, **message)
            else:
                refused = refusal(chunk, self._producer.produce_batch(part.topic, chunk, part.partition))
                if refused is not None:
                    raise KafkaException(refused)
            self._producer.poll(0)

    def emptied(self) -> None:
        """The transaction is committed, so nothing waits."""
        self._queued_bytes = 0

    def _flush(self) -> None:
        if self._producer.flush(self._call_s):
            raise KafkaException(KafkaError(_TIMED_OUT, "the queue of messages was not sent in time"))
        self._queued_bytes = 0
