"""Records into a topic, and the wait until the broker has them all."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from confluent_kafka import KafkaError, Message, Producer

from broker import clients
from broker.address import BrokerAddress
from broker.producer_queue import refusal
from broker.topic_shapes import broker_silent
from changelog.encode import Encoded
from changelog.errors import ServiceUnavailable

_CHUNK = 20_000


@dataclass(frozen=True)
class TopicWriter:
    """Writes records and waits until the broker has them all."""

    brokers: BrokerAddress
    timeout_s: float

    def write(self, topic: str, records: Encoded) -> None:
        """Raises ServiceUnavailable for the first record that was not taken in time."""
        producer = self._producer
        failures: list[KafkaError] = []

        def delivered(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                failures.append(error)

        messages = [{"key": key, "value": value} for key, value in zip(records.keys, records.values, strict=True)]
        for start in range(0, len(messages), _CHUNK):
            chunk = messages[start : start + _CHUNK]
            refused = refusal(chunk, producer.produce_batch(topic, chunk, on_delivery=delivered))
            failures += [] if refused is None else [refused]
            producer.poll(0)
        left = producer.flush(self.timeout_s)
        if failures:
            self._refused(topic, failures[0])
        if left:
            raise broker_silent(self.brokers, self.timeout_s, f"{left} records were not taken")

    def send(self, topic: str, key: bytes | None, value: bytes) -> None:
        """One record. Raises ServiceUnavailable if it was not taken in time."""
        self.write(topic, Encoded([key], [value]))

    def _refused(self, topic: str, error: KafkaError) -> None:
        if error.code() == KafkaError._MSG_TIMED_OUT:  # noqa: SLF001
            raise broker_silent(self.brokers, self.timeout_s, error.str())
        raise ServiceUnavailable(
            f'the broker refuses a record for "{topic}": {error.str()}', where=f"brokers {self.brokers}"
        )

    @cached_property
    def _producer(self) -> Producer:
        """Made at the first write, which waits half a second for its identity at the broker; the next ones do not."""
        settings = {
            "enable.idempotence": True,
            "message.timeout.ms": int(self.timeout_s * 1000),
            "linger.ms": 2,
            "compression.type": "lz4",
            "queue.buffering.max.messages": 2_000_000,
            "queue.buffering.max.kbytes": 1_048_576,
        }
        return clients.producer(self.brokers, settings)
