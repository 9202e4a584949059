"""A topic followed forever, on a thread, by somebody who keeps the offsets himself."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from confluent_kafka import Message, TopicPartition

from dovetail.broker import clients
from dovetail.broker.address import BrokerAddress
from dovetail.broker.clients import TopicConsumer
from dovetail.broker.errors import BrokerFault, fault_of
from dovetail.broker.reader import as_records
from dovetail.changelog.errors import ServiceUnavailable
from dovetail.changelog.work.supervised_thread import SupervisedThread

_LOG = logging.getLogger("dovetail.broker")
_POLL_S = 0.1
_WAIT_S = 60.0


@dataclass(frozen=True, slots=True)
class TakenRecords:
    """Some records of a topic, in order within each partition."""

    messages: list[Message]

    def __len__(self) -> int:
        return len(self.messages)

    @property
    def ends(self) -> dict[int, int]:
        """Partition → the offset that follows its last one."""
        return {message.partition() or 0: (message.offset() or 0) + 1 for message in self.messages}

    def table(self, *, headed: bool) -> pa.Table:
        """``reader.RECORDS``, or HEADED."""
        return as_records(self.messages, headed=headed)

    def by_partition(self) -> dict[int, list[tuple[int, bytes | None, bytes | None]]]:
        """Partition → offset, key and value of each."""
        found: defaultdict[int, list[tuple[int, bytes | None, bytes | None]]] = defaultdict(list)
        for message in self.messages:
            found[message.partition() or 0].append((message.offset() or 0, message.key(), message.value()))
        return found


class TopicSink(Protocol):
    """What takes the records of a followed topic, all on the follower's thread.

    An error is told to those who wait, and the same records come again after a pause.
    """

    def take(self, records: TakenRecords, ended: Mapping[int, int]) -> None:
        """Some records; ``ended``: partition → its end, where it was read so far. Calls ``TopicFollower.move``."""
        ...

    def after_poll(self) -> bool:
        """Called many times a second; whether the topic is to be opened again from where it was reached."""
        ...

    def missed(self) -> None:
        """Records are gone that were not read. Calls ``TopicFollower.place``."""
        ...

    def unavailable(self, why: str) -> ServiceUnavailable: ...


class TopicFollower:
    """Reads the committed records of a topic, partition by partition, outside of any group.

    group   a name for the broker's logs: it is never joined
    reset   what happens where the record at an offset is gone: it goes on from the ``earliest``, or that is an
            ``error``, and ``TopicSink.missed`` is called
    batch   most records that are taken at once
    """

    def __init__(
        self, brokers: BrokerAddress, topic: str, sink: TopicSink, *, group: str, reset: str, batch: int
    ) -> None:
        self._brokers = brokers
        self._topic = topic
        self._sink = sink
        self._group = group
        self._reset = reset
        self._batch = batch
        self._reached: dict[int, int] = {}
        self._failure: Exception | None = None
        self._moved = threading.Condition()
        self._overdue = threading.Event()
        self._thread = SupervisedThread(f"{group}-{topic}", self._follow, self._fail)

    def start(self) -> None:
        """From where it was ``place``d."""
        self._thread.start()

    def close(self) -> None:
        self._thread.close(None)

    # -- how far it is

    @property
    def reached(self) -> dict[int, int]:
        """Partition → up to where it was taken."""
        with self._moved:
            return dict(self._reached)

    def place(self, offsets: Mapping[int, int]) -> None:
        """Go on from ``offsets``, of these partitions; in the midst of it, once the consumer is opened again."""
        with self._moved:
            self._reached = dict(offsets)
            self._moved.notify_all()

    def move(self, offsets: Mapping[int, int]) -> None:
        """Everything before ``offsets`` was taken."""
        self._thread.mark_healthy()
        with self._moved:
            self._failure = None
            for partition, offset in offsets.items():
                self._reached[partition] = max(offset, self._reached.get(partition, 0))
            self._moved.notify_all()

    def await_reached(self, ends: Mapping[int, int]) -> None:
        """Return once all before ``ends`` was taken. Raises ServiceUnavailable if that fails, or takes too long: then
        the topic is opened again as well, since a consumer that has lost a partition does not find it by itself.
        """
        deadline = time.monotonic() + _WAIT_S
        with self._moved:
            while any(self._reached.get(partition, 0) < end for partition, end in ends.items()):
                if self._failure is not None:
                    raise self._sink.unavailable(str(self._failure)) from self._failure
                if not self._moved.wait(deadline - time.monotonic()):
                    self._overdue.set()
                    raise self._sink.unavailable(f"not read to its end within {_WAIT_S:g} s")

    # -- on the thread

    def _follow(self) -> None:
        while not self._thread.closing.is_set():
            with closing(self._consumer()) as consumer:
                try:
                    self._read(consumer)
                except _Missed:
                    self._sink.missed()

    def _fail(self, failure: Exception) -> None:
        """Told to who waits; it is tried again from the same records."""
        with self._moved:
            self._failure = failure
            self._moved.notify_all()

    def _read(self, consumer: TopicConsumer) -> None:
        self._overdue.clear()
        while not (self._thread.closing.is_set() or self._overdue.is_set()):
            first = consumer.poll(_POLL_S)
            if first is not None:
                # A call that waits for a batch waits its whole time; this one takes what is there.
                self._take([first, *consumer.consume(self._batch, 0)])
            if self._sink.after_poll():
                return

    def _take(self, messages: list[Message]) -> None:
        records, ended = [], dict[int, int]()
        for message in messages:
            error = message.error()
            if error is None:
                records.append(message)
                continue
            fault = fault_of(error)
            if fault is BrokerFault.END_OF_PARTITION:
                # The offsets before it may be marks of transactions, which no reader sees.
                ended[message.partition() or 0] = message.offset() or 0
            elif fault is BrokerFault.RECORDS_GONE:
                raise _Missed
            elif error.fatal() or not error.retriable():
                _LOG.warning("following %s: %s", self._topic, error.str())
        if records or ended:
            self._sink.take(TakenRecords(records), ended)

    def _consumer(self) -> TopicConsumer:
        settings = {
            "auto.offset.reset": self._reset,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 100,
            "fetch.error.backoff.ms": 50,
        }
        consumer = clients.consumer(self._brokers, self._group, settings)
        consumer.assign([TopicPartition(self._topic, partition, offset) for partition, offset in self.reached.items()])
        return consumer


class _Missed(Exception):
    """Records are gone that were not read."""
