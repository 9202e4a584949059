"""Dead letters back to their topics, and the mark of them beside: one transaction, so both are there or neither.

The mark stands in the topic of the letters, and not among the offsets of a consumer group: an offset says that all
before it is done, and a replay chooses letters by their reason; and the broker forgets the offsets of a group without
members after a week, when a replay would double what the one before has put back.

    replay 1   [letters 0-1999, mark 0-1999] [letters 2000-3999, mark ..   killed
    replay 2   aborts what is open, reads the marks, goes on with letter 2000

The transactional id belongs to the topic of letters: who opens it shuts out the replay before, dead or alive.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from types import TracebackType

import pyarrow as pa

from dovetail.broker.errors import BrokerError, BrokerFault
from dovetail.broker.producer_queue import Outgoing, OutgoingMessage, ProducerQueue
from dovetail.broker.transactional_writer import BrokerWait, WriteTarget, transactional_producer
from dovetail.changelog.dead_letter import mark
from dovetail.changelog.errors import ServiceUnavailable, SqlError
from dovetail.changelog.wording import counted
from dovetail.services.session.context import Context
from dovetail.services.session.replay.outcome import Target

_LIVES_S = 60.0
"""So long the broker waits for a replay that was killed, and holds up the readers of what it has written."""
_NO_PARTITION = -1


class LetterProducer:
    """From its making on, no other puts dead letters of ``topic`` back; ``count`` of them are."""

    def __init__(self, context: Context, topic: str) -> None:
        self._topic = topic
        self._target = _target(context, topic)
        self._call_s = self._target.call_s
        self.count = 0
        waited = BrokerWait(self._target)
        while True:
            try:
                self._producer = transactional_producer(self._target, 0)
                self._producer.init_transactions(self._call_s)
                break
            except BrokerError as failure:
                waited.after(failure)
        self._outbox = ProducerQueue(self._producer, self._call_s)

    def __enter__(self) -> LetterProducer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if kind is not None:
            self._abort()

    def _abort(self) -> BrokerError | None:
        """Why it cannot be aborted, if so: to other calls a producer that was shut out may say no more than "fatal"."""
        try:
            self._producer.purge(in_flight=False)
            self._producer.abort_transaction(self._call_s)
        except BrokerError as failure:
            return failure
        return None

    def put_back(self, dead_letters: pa.Table, targets: Mapping[str, Target]) -> None:
        """``dead_letters``: DEAD_LETTER_SCHEMA, their ``record_key`` and ``record_value``, and ``partition`` and
        ``offset`` of their own.

        Raises SqlError where another replay has begun, ServiceUnavailable where the broker takes no more.
        """
        try:
            self._producer.begin_transaction()
            for part in (*_records(dead_letters, targets), *_marks(self._topic, dead_letters)):
                self._outbox.send(part)
            self._outbox.sent()
            self._producer.commit_transaction(self._call_s)
        except BrokerError as failure:
            raise self._fault(failure) from failure
        self._outbox.emptied()
        self.count += dead_letters.num_rows

    def _fault(self, failure: BrokerError) -> SqlError | ServiceUnavailable:
        where = f"brokers {self._target.brokers}, after putting back {counted(self.count, 'letter')}"
        if failure.fault is BrokerFault.FENCED or (self._abort() or failure).fault is BrokerFault.FENCED:
            return SqlError(
                f"another replay of {self._topic} has begun and goes on with the rest",
                where=where,
                fix="nothing is lost or doubled; SHOW DEAD LETTERS says what is left",
            )
        return ServiceUnavailable(
            f"the broker takes no more letters of {self._topic}: {failure.reason}",
            where=where,
            fix="replay again: it goes on with those that were not put back",
        )


def _target(context: Context, topic: str) -> WriteTarget:
    """Named by the id of the topic: one of its name that is made later is another."""
    identity = f"dovetail.replay.{context.topics.ids([topic])[topic]}"
    dead_letter_bytes = context.topics.message_bytes(topic)
    return WriteTarget(context.brokers, identity, "", _LIVES_S, context.settings.broker_timeout_s, 0, dead_letter_bytes)


def _records(dead_letters: pa.Table, targets: Mapping[str, Target]) -> list[Outgoing]:
    """The records as they were, in their partitions and with their times.

    To a topic that has fewer partitions now they go by their keys.
    """
    columns = ("source_topic", "source_partition", "source_time", "record_key", "record_value")
    parts: dict[tuple[str, int], list[OutgoingMessage]] = defaultdict(list)
    times = dead_letters.column("source_time").cast(pa.int64())
    timed = dead_letters.set_column(dead_letters.schema.get_field_index("source_time"), "source_time", times)
    for topic, partition, time_ms, key, value in zip(
        *(timed.column(name).to_pylist() for name in columns), strict=True
    ):
        there = partition is not None and partition < targets[topic].partitions
        # To the library 0 is now.
        message = {"key": key, "value": value, "timestamp": time_ms or 0}
        parts[topic, partition if there else _NO_PARTITION].append(message)
    return [Outgoing(topic, messages, True, partition) for (topic, partition), messages in parts.items()]


def _marks(topic: str, dead_letters: pa.Table) -> list[Outgoing]:
    """One for each partition of the dead letters, in that partition."""
    offsets: dict[int, list[int]] = defaultdict(list)
    for partition, offset in zip(
        *(dead_letters.column(name).to_pylist() for name in ("partition", "offset")), strict=True
    ):
        offsets[partition].append(offset)
    return [Outgoing(topic, [mark(sorted(one))], True, partition) for partition, one in offsets.items()]
