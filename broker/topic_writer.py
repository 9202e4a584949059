"""Records into a topic, and the wait until the broker has them all."""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache

from confluent_kafka import KafkaError, Message

from dovetail.broker import clients
from dovetail.broker.address import BrokerAddress
from dovetail.broker.clients import TopicProducer
from dovetail.broker.errors import BrokerError, BrokerFault
from dovetail.broker.producer_queue import Outgoing, refusal
from dovetail.broker.topic_shapes import broker_silent
from dovetail.broker.topics import PartitionOffsets
from dovetail.changelog.encode import Encoded
from dovetail.changelog.errors import ServiceUnavailable
from dovetail.changelog.wording import counted

_CHUNK = 20_000
_WAIT_S = 0.1
_QUEUED = 1_000_000
_TRANSACTIONS_MS = (60_000, 900_000)
"""How long a transaction may last; the second is the most that a broker takes by default."""
_LEAST_PER_MS = 10
"""So many records are written in a millisecond, at the least."""
_SILENT = (BrokerFault.NOT_SENT, BrokerFault.TIMED_OUT, BrokerFault.ALL_DOWN)


@dataclass(frozen=True)
class TopicWriter:
    """Writes records and waits until the broker has them all."""

    brokers: BrokerAddress
    timeout_s: float

    def write(self, topic: str, records: Encoded) -> None:
        """Raises ServiceUnavailable for the first record that was not taken in time; others may have been written."""
        failures: list[BrokerError] = []
        _produce(self._producer, topic, records, failures)
        left = self._producer.flush(self.timeout_s)
        if failures:
            raise self._refusal(topic, failures[0])
        if left:
            raise broker_silent(self.brokers, self.timeout_s, f"it has not taken {counted(left, 'record')}")

    def write_whole(self, topic: str, records: Encoded) -> PartitionOffsets:
        """In one transaction: who reads committed records sees all of them or none. Where they end.

        Raises ServiceUnavailable if nothing was written.

        Of a writer that is killed in the midst of it the broker waits for more, and other records behind them wait too,
        for as long as a transaction lives.
        """
        failures: list[BrokerError] = []
        ends: dict[int, int] = {}
        try:
            producer = self._transactional(len(records.values))
            producer.begin_transaction()
            _produce(producer, topic, records, failures, ends)
            if not failures:
                producer.commit_transaction(self.timeout_s)
                return ends
        except BrokerError as failure:
            failures.append(failure)
        self._abort()
        raise self._refusal(topic, failures[0])

    def _abort(self) -> None:
        """The next transaction has a producer of its own: of this one it is not known how far it is."""
        for producer in self._producers.values():
            with suppress(BrokerError):
                producer.abort_transaction(self.timeout_s)
        self._producers.clear()

    def send(self, topic: str, key: bytes | None, value: bytes) -> None:
        """One record. Raises ServiceUnavailable if it was not taken in time."""
        self.write(topic, Encoded.of([key], [value]))

    def _refusal(self, topic: str, error: BrokerError) -> ServiceUnavailable:
        if error.fault in _SILENT:
            return broker_silent(self.brokers, self.timeout_s, error.reason)
        return ServiceUnavailable(
            f'the broker refuses a record for "{topic}": {error.reason}', where=f"brokers {self.brokers}"
        )

    @cached_property
    def _producer(self) -> TopicProducer:
        """Made at the first write, which waits half a second for its identity at the broker; the next ones do not."""
        return clients.producer(self.brokers, {**self._settings, "enable.idempotence": True})

    def _transactional(self, count: int) -> TopicProducer:
        """Of transactions that live long enough for so many records, and no longer: one that was left holds up readers.

        Under a name that no other writer has, so that none shuts another out.
        """
        lives_ms = next((ms for ms in _TRANSACTIONS_MS if count <= ms * _LEAST_PER_MS), _TRANSACTIONS_MS[-1])
        if lives_ms not in self._producers:
            transaction = {
                "transactional.id": f"dovetail.writer.{uuid.uuid4().hex}",
                "transaction.timeout.ms": lives_ms,
            }
            producer = clients.producer(self.brokers, {**self._settings, **transaction})
            producer.init_transactions(self.timeout_s)
            self._producers[lives_ms] = producer
        return self._producers[lives_ms]

    @cached_property
    def _producers(self) -> dict[int, TopicProducer]:
        """Those of transactions, by how long these live."""
        return {}

    @property
    def _settings(self) -> dict[str, int | str]:
        return {
            "message.timeout.ms": min(int(self.timeout_s * 1000), _TRANSACTIONS_MS[0]),
            "linger.ms": 2,
            "compression.type": "lz4",
            "queue.buffering.max.messages": 2_000_000,
            "queue.buffering.max.kbytes": 1_048_576,
        }


def _produce(
    producer: TopicProducer,
    topic: str,
    records: Encoded,
    failures: list[BrokerError],
    ends: dict[int, int] | None = None,
) -> None:
    """Hand the records to the producer; those that are refused, now or later, add why to ``failures``."""

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failures.append(BrokerError.of(error))
        elif ends is not None and (partition := message.partition()) is not None:
            ends[partition] = (message.offset() or 0) + 1

    messages = [{"key": key, "value": value} for key, value in zip(records.keys, records.values, strict=True)]
    for start in range(0, len(messages), _CHUNK):
        chunk = messages[start : start + _CHUNK]
        refused = refusal(chunk, producer.produce_batch(topic, chunk, on_delivery=delivered))
        failures += [] if refused is None else [refused]
        producer.poll(0)
        while len(producer) > _QUEUED and not failures:
            # A queue that is full refuses what comes next.
            producer.poll(_WAIT_S)


def write_at_once(brokers: BrokerAddress, part: Outgoing, wait_s: float) -> None:
    """A few messages, each batch of which somebody waits for. One whose acknowledgement was lost may be there twice.

    Raises BrokerError if they are not taken in time.
    """
    failures: list[BrokerError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(BrokerError.of(error))

    producer = _hasty(brokers, wait_s)
    taken = producer.produce_batch(part.topic, part.messages, part.partition, on_delivery=delivered)
    failures += filter(None, [refusal(part.messages, taken)])
    if producer.flush(wait_s) and not failures:
        failures.append(BrokerError(f"no answer within {wait_s:g} s", BrokerFault.TIMED_OUT))
    if failures:
        _hasty.cache_clear()
        raise failures[0]


@lru_cache(maxsize=4)
def _hasty(brokers: BrokerAddress, wait_s: float) -> TopicProducer:
    settings = {
        # An idempotent producer waits half a second for its identity before it sends its first message.
        "acks": "all",
        "max.in.flight.requests.per.connection": 1,
        "message.timeout.ms": int(wait_s * 1000),
        "linger.ms": 0,
        **clients.QUICK_RETURN,
    }
    return clients.producer(brokers, settings)
