"""The transactions of one input partition: answers, memo, dead letters and the offset that was read, together or not.

A transactional id belongs to one partition of one query, so opening it waits for, or takes back, what its last owner
left unfinished; only then is the committed offset read. The offset is committed as a member of the consumer group: a
worker that the group has given up on, and does not know it yet, is refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dovetail.broker.errors import BrokerError, BrokerFault
from dovetail.broker.producer_queue import Outgoing, OutgoingRecords, ProducerQueue
from dovetail.broker.transactional_writer import (
    BrokerWait,
    WriteTarget,
    committed_offset,
    first_offset,
    transactional_producer,
)
from dovetail.changelog.dead_letter import DeadLetter
from dovetail.changelog.encode import Encoded
from dovetail.changelog.errors import RecordsGone

_FENCED_PAUSE_S = 0.05


class NotAMember(Exception):
    """The group has given the partition to somebody else."""


@dataclass(frozen=True)
class Place:
    """An input partition of a query, and where a query without a committed offset starts in it."""

    target: WriteTarget
    topic: str
    partition: int
    start: int


class Transactions:
    """An initialised producer. After any error but NotAMember a new one is made; ``position`` is where that goes on.

    Raises RecordsGone where the record at the committed offset is no longer there.

    ``metadata`` names the member of the group that commits.
    """

    def __init__(self, place: Place, metadata: bytes) -> None:
        self._place = place
        self._metadata = metadata
        self._call_s = place.target.call_s
        self._open = False
        self._remembered = False
        self._memo_end: int | None = None
        self._producer = transactional_producer(place.target, place.partition)
        self._outbox = ProducerQueue(self._producer, self._call_s)
        self._producer.init_transactions(self._call_s)
        self.position = self._committed()

    def _committed(self) -> int:
        place, target = self._place, self._place.target
        place_key = (target.brokers, target.identity, place.topic, place.partition, self._call_s)
        offset, first = committed_offset(*place_key), first_offset(*place_key)
        if offset < 0:
            return max(place.start, first)
        if offset < first:
            raise RecordsGone(
                f"records of {place.topic}[{place.partition}] are gone that the query has not read yet: it has read up"
                f" to offset {offset}, and the first record that is there has offset {first}",
                fix="give the topic a longer retention; to go on without them, drop the query and create it again",
            )
        return offset

    @property
    def is_open(self) -> bool:
        return self._open

    def begin(self) -> None:
        if not self._open:
            self._producer.begin_transaction()
            self._open = True

    def write(self, topic: str, records: Encoded) -> None:
        """Messages in order, their partitions by their keys."""
        self._outbox.send(OutgoingRecords(topic, records))

    def remember(self, topic: str, updates: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Records of the memo's topic, in the partition of the same number as that of the input."""
        self._remembered = True
        messages = [{"key": key, "value": value} for key, value in updates]
        partition, delivered = self._place.partition, self._memo_delivered
        self._outbox.send(Outgoing(topic, messages, partition=partition, delivered=delivered))

    def _memo_delivered(self, offset: int) -> None:
        self._memo_end = offset + 1

    def write_dead_letters(self, topic: str, dead_letters: Iterable[DeadLetter]) -> None:
        self._outbox.send(Outgoing(topic, [dead_letter.message for dead_letter in dead_letters], with_headers=True))

    def commit(self, position: int) -> int | None:
        """Everything written since ``begin``, and that the input is read up to ``position``.

        Where the memo's records of this transaction end in their partition; None where there was none.
        """
        try:
            self._outbox.send_offset(self._metadata, self._place.topic, self._place.partition, position)
            # Else the time of a call would be that of all that waits, and a large answer begin again forever.
            self._outbox.sent()
            self._producer.commit_transaction(self._call_s)
        except BrokerError as failure:
            if failure.fault is BrokerFault.NOT_A_MEMBER:
                raise NotAMember(failure.reason) from failure
            raise
        self._open = False
        self._outbox.emptied()
        self.position = position
        memo_end = self._memo_end if self._remembered else None
        self._remembered = False
        return memo_end

    def abort(self) -> None:
        """Take back what is not committed; raises BrokerError where the broker does not answer in time."""
        if self._open:
            self._producer.purge(in_flight=False)
            self._producer.abort_transaction(self._call_s)
            self._open = False


def opened(place: Place, metadata: bytes, given_up: Callable[[], bool]) -> Transactions:
    """New transactions; a lost broker is waited for, up to ``place.target.broker_wait_s``.

    Raises ServiceUnavailable after the time, NotAMember once ``given_up``.
    """
    waited = BrokerWait(place.target)
    while True:
        if given_up():
            raise NotAMember("the partition was given up meanwhile")
        try:
            return Transactions(place, metadata)
        except BrokerError as failure:
            waited.after(failure)
            if failure.fault is BrokerFault.FENCED:
                time.sleep(_FENCED_PAUSE_S)
