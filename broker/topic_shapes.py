"""The topics of streams: made, checked and deleted by the session that the user's statements run in."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, OffsetSpec, ResourceType

from dovetail.broker import clients
from dovetail.broker.address import BrokerAddress
from dovetail.broker.consumer_groups import groups_of
from dovetail.broker.errors import BrokerError, BrokerFault, answer
from dovetail.broker.presence import NoAnswer, no_answer
from dovetail.broker.start_offsets import ReadStart, least_offsets, resolved_first_offsets
from dovetail.broker.topics import (
    Offsets,
    PartitionOffsets,
    compacted_after_ms,
    known_ids,
    message_bytes,
    offsets,
    topic_config,
)
from dovetail.changelog.errors import ServiceUnavailable, SqlError, UnknownName
from dovetail.changelog.schema import Kind
from dovetail.changelog.suggest import suggestion

_BROKER_DEFAULT = -1
_POLL_S = 0.02
_COMMITTED_S = 5.0
_RETRIED_AFTER_S = 1.0
_NEW_TOPIC = (BrokerFault.NO_TOPIC, BrokerFault.NO_LEADER)
_WEEK_MS = 7 * 24 * 3600 * 1000


@dataclass(frozen=True)
class TopicShape:
    """How a topic is made; what is left out is the broker's default."""

    partitions: int = _BROKER_DEFAULT
    replicas: int = _BROKER_DEFAULT
    config: Mapping[str, str] = field(default_factory=dict)


def config_for(kind: Kind, by_version: bool = False) -> dict[str, str]:
    """What a topic keeps. Records are the history of the queries that read them, so none is dropped for its age.

    UPSERT is compacted: only the last record of a key counts, and a tombstone stays a week for readers that were away.
    CHANGELOG_KV is not, though it has keys: a retraction says which row goes, and compaction would take the row before.
    Nor is UPSERT where a version decides (``by_version``): the last record of a key need not be the one that stands.
    """
    if kind is Kind.UPSERT and not by_version:
        return {"cleanup.policy": "compact", "delete.retention.ms": str(_WEEK_MS)}
    return {"cleanup.policy": "delete", "retention.ms": "-1"}


class TopicAdmin:
    """The topics of one broker. Every call answers within ``timeout_s`` or raises ServiceUnavailable."""

    def __init__(self, brokers: BrokerAddress, timeout_s: float) -> None:
        self.brokers = brokers
        self._timeout_s = timeout_s
        self._admin = clients.admin(brokers)

    def partitions(self) -> dict[str, int]:
        """Every topic, and how many partitions it has."""
        with self._errors():
            described = self._admin.list_topics(timeout=self._timeout_s).topics
        return {name: len(topic.partitions) for name, topic in described.items() if topic.error is None}

    def expect(self, topic: str) -> int:
        """The number of partitions of a topic that must be there. Raises UnknownName with the nearest name."""
        known = {name: count for name, count in self.partitions().items() if not name.startswith("__")}
        if topic not in known:
            listing = "SHOW TOPICS lists those that exist; a stream that is not EXTERNAL gets a topic of its own"
            fix = suggestion(topic, known, listing)
            raise UnknownName(f'there is no topic "{topic}"', where=f"brokers {self.brokers}", fix=fix)
        return known[topic]

    def ids(self, topics: Iterable[str]) -> dict[str, str]:
        """By name, what tells a topic from all others of its name, of those that are there."""
        names = sorted(set(topics) & self.partitions().keys())
        with self._errors():
            return known_ids(self._admin, names, self._timeout_s)

    def ever_written(self, topic: str) -> bool:
        """Whether there ever was a record in ``topic``, which may not be there at all."""
        return topic in self.partitions() and any(self.ends(topic).values())

    def ends(self, topic: str) -> PartitionOffsets:
        """Where the committed records of ``topic`` end now. Raises UnknownName if there is no such topic."""
        return self._ends(topic, IsolationLevel.READ_COMMITTED)

    def begins(self, topic: str) -> PartitionOffsets:
        """The first record of each partition that is there still. Raises UnknownName if there is no such topic."""
        specs = {TopicPartition(topic, partition): OffsetSpec.earliest() for partition in range(self.expect(topic))}
        with self._errors():
            found = offsets(self._admin, specs, timeout_s=self._timeout_s)
        return {partition: offset for (_, partition), offset in found.items()}

    def all_ends(self, topics: Iterable[str]) -> Offsets:
        """As ``ends``, of those of ``topics`` that are there."""
        known = self.partitions()
        found: Offsets = {topic: {} for topic in topics if topic in known}
        specs = {
            TopicPartition(topic, partition): OffsetSpec.latest()
            for topic in found
            for partition in range(known[topic])
        }
        if specs:
            with self._errors():
                for (topic, partition), offset in offsets(self._admin, specs, timeout_s=self._timeout_s).items():
                    found[topic][partition] = offset
        return found

    def first_offsets(self, readings: Sequence[ReadStart]) -> Offsets:
        """Topic → partition → where the first of ``readings`` of it would begin now. Raises UnknownName."""
        with self._errors():
            return least_offsets(readings, resolved_first_offsets(self._admin, readings))

    def written_ends(self, topic: str) -> PartitionOffsets:
        """Where all ends that is written now, be it committed or not. Raises UnknownName if there is no such topic."""
        return self._ends(topic, IsolationLevel.READ_UNCOMMITTED)

    def groups(self, topic: str) -> Mapping[str, PartitionOffsets]:
        """By consumer group that reads ``topic``, the offsets that it has committed; without those of queries."""
        with self._errors():
            return groups_of(self._admin, topic, self._timeout_s)

    def quiescent_ends(self, topic: str) -> PartitionOffsets:
        """As ``ends``, when no transaction is open: a commit is answered before its records can be read.

        Where there always is an open one, what is committed by the end of the wait.
        """
        end = time.monotonic() + self._timeout_s
        while True:
            committed = self.ends(topic)
            if committed == self.written_ends(topic) or time.monotonic() > end:
                return committed
            time.sleep(_POLL_S)

    def decided_ends(self, topic: str) -> PartitionOffsets:
        """Where all ends that is written now, once every transaction is decided that has a part in it.

        Raises ServiceUnavailable where one stays open: what is committed behind its records cannot be read yet.
        """
        written = self.written_ends(topic)
        end = time.monotonic() + self._timeout_s
        while any(offset < written[partition] for partition, offset in self.ends(topic).items()):
            if time.monotonic() > end:
                raise ServiceUnavailable(
                    f'a transaction that writes to "{topic}" is open for longer than {self._timeout_s:g} s, and hides'
                    " the records behind it",
                    where=f"brokers {self.brokers}",
                    fix="try again: its writer ends it, or the broker does after transaction.timeout.ms",
                )
            time.sleep(_POLL_S)
        return written

    def message_bytes(self, topic: str) -> int:
        """The largest message that a topic takes. Raises UnknownName if there is no such topic."""
        self.expect(topic)
        with self._errors():
            return message_bytes(self._admin, topic)

    def await_committed(self, topic: str, ends: PartitionOffsets) -> None:
        """Wait until what was written up to ``ends`` can be read: a commit is answered before.

        Not for long: an open transaction of somebody else, begun before, may hold it back.
        """
        end = time.monotonic() + min(self._timeout_s, _COMMITTED_S)
        while time.monotonic() < end:
            committed = self.ends(topic)
            if all(committed.get(partition, 0) >= wanted for partition, wanted in ends.items()):
                return
            time.sleep(_POLL_S)

    def since(self, topic: str, written_ms: int) -> PartitionOffsets:
        """By partition, the first record that was written at a moment or after it; the end where none was."""
        specs = {
            TopicPartition(topic, partition): OffsetSpec.for_timestamp(written_ms) for partition in self.ends(topic)
        }
        with self._errors():
            found = offsets(self._admin, specs, IsolationLevel.READ_COMMITTED, self._timeout_s)
        ends = self.ends(topic) if min(found.values(), default=0) < 0 else {}
        return {partition: ends[partition] if offset < 0 else offset for (_, partition), offset in found.items()}

    def compacted_after_ms(self, topic: str) -> int | None:
        """How old a record is at least that goes because a later one has its key; None where none does."""
        with self._errors():
            return compacted_after_ms(self._admin, topic)

    def _ends(self, topic: str, level: IsolationLevel) -> PartitionOffsets:
        specs = {TopicPartition(topic, partition): OffsetSpec.latest() for partition in range(self.expect(topic))}
        end = time.monotonic() + self._timeout_s
        with self._errors():
            while True:
                try:
                    found = offsets(self._admin, specs, level, self._timeout_s)
                    return {partition: offset for (_, partition), offset in found.items()}
                except BrokerError as failure:
                    # Of a topic that was made a moment ago, not every broker knows.
                    if failure.fault not in _NEW_TOPIC or time.monotonic() > end:
                        raise
                time.sleep(_POLL_S)

    def create(self, topic: str, shape: TopicShape) -> bool:
        """Make a topic; False if it was there already."""
        new = NewTopic(topic, shape.partitions, shape.replicas, config=dict(shape.config))
        with self._errors():
            made = self._admin.create_topics([new], request_timeout=self._timeout_s)[topic]
            try:
                answer(made, self._timeout_s)
            except BrokerError as failure:
                return self._unless_there(topic, failure)
        self._await(lambda known: topic in known)
        return True

    def configure(self, topic: str, config: Mapping[str, str | None]) -> None:
        """Set what a topic keeps; None: the broker's default."""
        entries = [
            ConfigEntry(
                name,
                value,
                incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
            )
            for name, value in config.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        with self._errors():
            changed = self._admin.incremental_alter_configs([resource], request_timeout=self._timeout_s)
            answer(changed[resource], self._timeout_s)
            # The controller answers before the brokers have it.
            end = time.monotonic() + self._timeout_s
            while time.monotonic() < end and not self._is_configured(topic, config):
                time.sleep(_POLL_S)

    def _is_configured(self, topic: str, config: Mapping[str, str | None]) -> bool:
        found = topic_config(self._admin, topic)
        return all(value is None or found[name] == value for name, value in config.items())

    def _unless_there(self, topic: str, failure: BrokerError) -> bool:
        refused = f'the broker refuses the topic "{topic}": {failure.reason}'
        match failure.fault:
            case BrokerFault.TOPIC_EXISTS:
                return False
            case BrokerFault.BAD_TOPIC:
                raise SqlError(refused, where=f"brokers {self.brokers}")
            case BrokerFault.BAD_SHAPE:
                raise SqlError(refused, fix="see shards and replication_factor in SETTINGS")
        raise failure

    def delete(self, topics: Iterable[str]) -> None:
        """Delete topics; one that is not there is none to delete."""
        names = sorted(set(topics))
        if not names:
            return
        with self._errors():
            for deleted in self._admin.delete_topics(names, request_timeout=self._timeout_s).values():
                try:
                    answer(deleted, self._timeout_s)
                except BrokerError as failure:
                    if failure.fault is not BrokerFault.NO_TOPIC:
                        raise
        self._await(lambda known: known.isdisjoint(names))

    def _await(self, seen: Callable[[Set[str]], bool]) -> None:
        """The broker answers before all that it tells about topics is up to date."""
        end = time.monotonic() + self._timeout_s
        while not seen(self.partitions().keys()) and time.monotonic() < end:
            time.sleep(_POLL_S)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except BrokerError as failure:
            raise broker_silent(self.brokers, self._timeout_s, failure.reason) from failure


def broker_silent(brokers: BrokerAddress, timeout_s: float, reason: str) -> ServiceUnavailable:
    """The error for a broker that did not answer in time; ``reason`` where it answers again by now."""
    found = no_answer(brokers, _RETRIED_AFTER_S) or NoAnswer(reason)
    return ServiceUnavailable(
        f"Kafka does not answer within {timeout_s:g} s: {found.reason}", where=f"brokers {brokers}", fix=found.fix
    )
