"""Feeds: the topics of changes at the sources, read by every process that has a dictionary with one open."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from dovetail.broker import clients, topics
from dovetail.broker.address import BrokerAddress
from dovetail.broker.errors import BrokerError
from dovetail.broker.following import TakenRecords, TopicFollower
from dovetail.changelog.errors import DovetailError, ServiceUnavailable, UnknownName
from dovetail.dictionaries.definition.definition import Definition
from dovetail.dictionaries.feed.feed_decoder import FeedDecoder
from dovetail.dictionaries.feed.feed_definition import Feed
from dovetail.dictionaries.feed.resumption import resume_offsets
from dovetail.dictionaries.feed.source_changes import Fed, SourceChanges
from dovetail.runtime.clock import now_ms

_LOG = logging.getLogger("dovetail.worker")
_BATCH = 5_000
_CALL_S = 10.0
_LOOK_S = 5.0
_REPORT_EVERY_S = 60.0


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
        self._admin = clients.admin(brokers)
        self._decoder = FeedDecoder(definition, feed)
        self._complaints = _Complaints(f'dictionary "{definition.name}": feed {feed.topic}')
        self._feed = ""
        self._next_look_s = time.monotonic() + _LOOK_S
        self._follower = TopicFollower(brokers, feed.topic, self, group="dovetail-feed", reset="error", batch=_BATCH)
        ends = self._place()
        self._follower.start()
        try:
            self._follower.await_reached(ends)
        except ServiceUnavailable:
            self._follower.close()
            raise

    def close(self) -> None:
        self._follower.close()

    def _place(self, *, anew: bool = False) -> Mapping[int, int]:
        """Where reading begins, and where the topic ends now. ``anew``: changes were missed."""
        try:
            self._feed, partitions = self._described()
            # The positions first: whoever moves them on has read what they name.
            positions = {} if anew else self._layout.feed_positions(self._feed)
            first = topics.begins(self._admin, {self._topic: partitions})[self._topic]
            ends = topics.ends(self._admin, {self._topic: partitions})[self._topic]
        except BrokerError as failure:
            raise self.unavailable(failure.reason) from failure
        first_offsets = resume_offsets(positions, first, ends)
        if first_offsets is None:
            self._layout.begin_feed(self._feed, ends)
        self._follower.place(ends if first_offsets is None else first_offsets)
        return ends

    def _described(self) -> tuple[str, list[int]]:
        """The topic with its id, which another one of the same name has not, and its partitions."""
        found = topics.described(self._admin, [self._topic], _CALL_S).get(self._topic)
        if found is None:
            raise UnknownName(
                f'topic "{self._topic}" does not exist',
                where=f'dictionary "{self._name}", SETTINGS, feed_topic',
                fix="create it, or let what captures the changes do so",
            )
        return f"{self._topic}/{found.id}", list(found.partitions)

    def unavailable(self, why: str) -> ServiceUnavailable:
        return ServiceUnavailable(
            f'"{self._topic}", the feed of dictionary "{self._name}", cannot be read: {why}', where=str(self._brokers)
        )

    # -- on the thread

    def take(self, records: TakenRecords, ended: Mapping[int, int]) -> None:
        reached, read_ms = self._follower.reached, now_ms()
        for partition, found in records.by_partition().items():
            changes = self._decoder.decode(reached[partition], found)
            self._layout.apply_feed(self._feed, partition, changes, read_ms)
            self._complaints.add(changes)
            self._follower.move({partition: changes.end})
        if ended:
            self._follower.move(ended)

    def after_poll(self) -> bool:
        now_s = time.monotonic()
        self._complaints.tell(now_s)
        if now_s < self._next_look_s:
            return False
        self._next_look_s = now_s + _LOOK_S
        return self._is_another() or self._has_grown()

    def _is_another(self) -> bool:
        """Whether the topic was deleted and made again. All is forgotten then: nobody knows what happened at the source
        in between.
        """
        try:
            if self._described()[0] == self._feed:
                return False
        except DovetailError:
            return False
        _LOG.warning("feed %s of dictionary %s: made again, all is forgotten", self._topic, self._name)
        self._place(anew=True)
        return True

    def _has_grown(self) -> bool:
        """Whether the topic has new partitions, which are read from their beginning."""
        reached = self._follower.reached
        try:
            new = set(topics.partitions(self._admin, self._topic)) - reached.keys()
        except DovetailError:
            return False
        if new:
            self._follower.place(reached | dict.fromkeys(new, 0))
        return bool(new)

    def missed(self) -> None:
        _LOG.warning("feed %s of dictionary %s: records are gone, all is forgotten", self._topic, self._name)
        self._place(anew=True)


class _Complaints:
    """Says of records that cannot be used how many there were, and why the first: at once, then once a minute."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._count = 0
        self._reason = ""
        self._reported_s = float("-inf")

    def add(self, changes: SourceChanges) -> None:
        self._count += changes.rejected
        self._reason = self._reason or changes.reason

    def tell(self, now_s: float) -> None:
        if self._count and now_s - self._reported_s >= _REPORT_EVERY_S:
            _LOG.warning("%s: %d records left out, the first: %s", self._what, self._count, self._reason)
            self._count, self._reason, self._reported_s = 0, "", now_s
