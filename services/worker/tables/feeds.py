"""Feeds: the topics of changes at the sources, read by every process that has a dictionary with one open."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from broker import clients, topics
from broker.address import BrokerAddress
from broker.following import following
from changelog.errors import DovetailError, ServiceUnavailable, UnknownName
from dictionaries.definition.definition import Definition
from dictionaries.feed.feed_decoder import FeedDecoder
from dictionaries.feed.feed_definition import Feed
from dictionaries.feed.resumption import resume_offsets
from dictionaries.feed.source_changes import Fed, SourceChanges

_LOG = logging.getLogger("dovetail.worker")
_BATCH = 5_000
_POLL_S = 0.1
_PAUSE_S = 1.0
_WAIT_S = 60.0
_CALL_S = 10.0
_LOOK_S = 10.0
_TOLD_EVERY_S = 60.0


class FeedReader:
    """Takes the changes of a topic into a layout, on a thread.

    When it is made, it returns once the layout has all that the topic holds, so that no lookup is answered without it:
    what was missed while no process ran is read first where the layout knows where it was (``Fed.feed_positions``),
    else all that is held is forgotten. Raises UnknownName if there is no topic, ServiceUnavailable without a broker.

    Records that are gone before they are read: all is forgotten as well. Without a broker the TTL alone holds.
    """

    def __init__(self, definition: Definition, feed: Feed, layout: Fed, brokers: BrokerAddress) -> None:
        self._name = definition.name
        self._topic = feed.topic
        self._layout = layout
        self._brokers = brokers
        self._admin: AdminClient = clients.admin(brokers)
        self._decoder = FeedDecoder(definition, feed)
        self._complaints = _Complaints(f'dictionary "{definition.name}": feed {feed.topic}')
        self._moved = threading.Condition()
        self._failure: Exception | None = None
        self._stopped = threading.Event()
        self._feed = ""
        self._reached: dict[int, int] = {}
        ends = self._place()
        self._thread = threading.Thread(target=self._follow, name=f"feed-{definition.name}", daemon=True)
        self._thread.start()
        self._await(ends)

    def close(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _place(self, *, anew: bool = False) -> Mapping[int, int]:
        """Where reading begins, and where the topic ends now. ``anew``: changes were missed."""
        try:
            self._feed, partitions = self._described()
            # The positions first: whoever moves them on has read what they name.
            held = {} if anew else self._layout.feed_positions(self._feed)
            first = self._offsets(partitions, OffsetSpec.earliest)
            ends = self._offsets(partitions, OffsetSpec.latest)
        except (KafkaException, TimeoutError) as failure:
            raise self._unavailable("the broker does not answer") from failure
        starts = resume_offsets(held, first, ends)
        if starts is None:
            self._layout.begin_feed(self._feed, ends)
        with self._moved:
            self._reached = dict(ends) if starts is None else starts
            self._moved.notify_all()
        return ends

    def _described(self) -> tuple[str, list[int]]:
        """The topic with its id, which another one of the same name has not, and its partitions."""
        described = self._admin.describe_topics(TopicCollection([self._topic]), request_timeout=_CALL_S)
        try:
            found = described[self._topic].result(_CALL_S)
        except KafkaException as failure:
            if failure.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
            raise UnknownName(
                f'topic "{self._topic}" does not exist',
                where=f'dictionary "{self._name}", SETTINGS, feed_topic',
                fix="create it, or let what captures the changes do so",
            ) from None
        return f"{self._topic}/{found.topic_id}", [partition.id for partition in found.partitions]

    def _offsets(self, partitions: list[int], spec: Callable[[], OffsetSpec]) -> dict[int, int]:
        places = {TopicPartition(self._topic, partition): spec() for partition in partitions}
        return {partition: offset for (_, partition), offset in topics.offsets(self._admin, places).items()}

    def _await(self, ends: Mapping[int, int]) -> None:
        deadline = time.monotonic() + _WAIT_S
        with self._moved:
            while any(self._reached.get(partition, 0) < end for partition, end in ends.items()):
                late = not self._moved.wait(deadline - time.monotonic())
                if self._failure is not None or late:
                    self._stopped.set()
                    raise self._unavailable(str(self._failure or f"not read to its end within {_WAIT_S:g} s"))

    def _unavailable(self, why: str) -> ServiceUnavailable:
        return ServiceUnavailable(
            f'"{self._topic}", the feed of dictionary "{self._name}", cannot be read: {why}', where=str(self._brokers)
        )

    # -- on the thread

    def _follow(self) -> None:
        while not self._stopped.is_set():
            consumer = self._consumer()
            try:
                self._read(consumer)
            except _Missed:
                self._begin_anew()
            except Exception as failure:  # noqa: BLE001 - told to who waits, and tried again from the same records
                if isinstance(failure, DovetailError | KafkaException):
                    _LOG.warning("feed %s of dictionary %s: %s", self._topic, self._name, failure)
                else:
                    _LOG.exception("feed %s of dictionary %s", self._topic, self._name)
                with self._moved:
                    self._failure = failure
                    self._moved.notify_all()
                self._stopped.wait(_PAUSE_S)
            finally:
                consumer.close()

    def _begin_anew(self) -> None:
        _LOG.warning("feed %s of dictionary %s: records are gone, all is forgotten", self._topic, self._name)
        try:
            self._place(anew=True)
        except DovetailError as failure:
            _LOG.warning("feed %s of dictionary %s: %s", self._topic, self._name, failure)
            self._stopped.wait(_PAUSE_S)

    def _read(self, consumer: Consumer) -> None:
        look_s = time.monotonic() + _LOOK_S
        while not self._stopped.is_set():
            first = consumer.poll(_POLL_S)
            if first is not None:
                # A call that waits for a batch waits its whole time; this one takes what is there.
                self._take([first, *consumer.consume(_BATCH, 0)])
            self._complaints.tell(time.monotonic())
            if time.monotonic() > look_s:
                look_s = time.monotonic() + _LOOK_S
                if self._has_grown():
                    return

    def _has_grown(self) -> bool:
        """Whether the topic has new partitions, which are read from their beginning."""
        try:
            added = set(topics.partitions(self._admin, self._topic)) - self._reached.keys()
        except DovetailError:
            return False
        with self._moved:
            self._reached |= dict.fromkeys(added, 0)
        return bool(added)

    def _take(self, messages: list[Message]) -> None:
        records: defaultdict[int, list[tuple[int, bytes | None, bytes | None]]] = defaultdict(list)
        ended: dict[int, int] = {}
        for message in messages:
            partition, offset, error = message.partition() or 0, message.offset() or 0, message.error()
            if error is None:
                records[partition].append((offset, message.key(), message.value()))
            elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001
                # The offsets before it may be marks of transactions, which no reader sees.
                ended[partition] = offset
            elif error.code() in _GONE:
                raise _Missed
            elif error.fatal() or not error.retriable():
                _LOG.warning("feed %s: %s", self._topic, error.str())
        now_ms = time.time_ns() // 1_000_000
        for partition, found in records.items():
            changes = self._decoder.decode(self._reached[partition], found)
            self._layout.apply_feed(self._feed, partition, changes, now_ms)
            self._complaints.add(changes)
            self._move(partition, changes.end)
        for partition, offset in ended.items():
            self._move(partition, offset)

    def _move(self, partition: int, offset: int) -> None:
        with self._moved:
            self._failure = None
            self._reached[partition] = max(self._reached[partition], offset)
            self._moved.notify_all()

    def _consumer(self) -> Consumer:
        return following(self._brokers, self._topic, self._reached, group="dovetail-feed", reset="error")


class _Missed(Exception):
    """Records are gone that were not read."""


_GONE = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})  # noqa: SLF001


class _Complaints:
    """Says of records that cannot be used how many there were, and why the first: at once, then once a minute."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._count = 0
        self._reason = ""
        self._told_s = float("-inf")

    def add(self, changes: SourceChanges) -> None:
        self._count += changes.rejected
        self._reason = self._reason or changes.reason

    def tell(self, now_s: float) -> None:
        if self._count and now_s - self._told_s >= _TOLD_EVERY_S:
            _LOG.warning("%s: %d records left out, the first: %s", self._what, self._count, self._reason)
            self._count, self._reason, self._told_s = 0, "", now_s
