"""Topics: made where missing, asked for partitions and offsets."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress

from confluent_kafka import OFFSET_INVALID, IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, OffsetSpec, ResourceType

from dovetail.changelog.errors import DovetailError, ServiceUnavailable, UnknownName

PartitionOffsets = Mapping[int, int]
"""Partition → offset of the next record."""
Offsets = dict[str, dict[int, int]]
"""Topic → partition → offset of the next record."""

_CALL_S = 10.0
_LOOK_S = 0.02
_ELECTION_S = 2.0
_NO_LEADER = frozenset({KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE})
FRAME_BYTES = 512
"""What a batch of one message has around it, at the most."""


def partitions(client: AdminClient, topic: str) -> list[int]:
    """The partitions of ``topic``; UnknownName if there is no such topic."""
    try:
        described = client.list_topics(topic, timeout=_CALL_S).topics[topic]
    except KafkaException as failure:
        raise ServiceUnavailable(
            f"the broker does not answer: {failure.args[0].str()}",
            where=f'topic "{topic}"',
            fix="start the broker (dovetail up), or set brokers to where it listens",
        ) from failure
    if described.error is not None:
        raise _unanswered(topic, described.error)
    if not described.partitions:
        raise _unanswered(topic, KafkaError(KafkaError.LEADER_NOT_AVAILABLE))
    return sorted(described.partitions)


def _unanswered(topic: str, error: KafkaError) -> DovetailError:
    if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
        return UnknownName(
            f'topic "{topic}" does not exist', where="the query's inputs", fix=f'create the topic "{topic}" first'
        )
    return ServiceUnavailable(
        f"the broker does not say what it has of {topic}: {error.str()}",
        where=f'topic "{topic}"',
        fix="it is asked again; if that goes on, see the log of the broker",
    )


def ensure(client: AdminClient, wanted: Mapping[str, int]) -> None:
    """Make every topic of ``wanted`` (name → partitions) that is not there; one that is stays as it is."""
    existing = client.list_topics(timeout=_CALL_S).topics
    missing = [NewTopic(name, count) for name, count in wanted.items() if name not in existing]
    for made in client.create_topics(missing).values() if missing else ():
        try:
            made.result(_CALL_S)
        except KafkaException as failure:
            if failure.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
    for topic in missing:
        _await_leaders(client, topic.topic)


def widen(client: AdminClient, topic: str, count: int) -> None:
    """Give a topic ``count`` partitions, if it has fewer."""
    if len(partitions(client, topic)) < count:
        for made in client.create_partitions([NewPartitions(topic, count)]).values():
            made.result(_CALL_S)


def message_bytes(client: AdminClient, topic: str) -> int:
    """The largest message that a topic takes, key, headers and value together."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    described = client.describe_configs([resource], request_timeout=_CALL_S)[resource].result(_CALL_S)
    return int(described["max.message.bytes"].value) - FRAME_BYTES


def ids(client: AdminClient, names: Iterable[str]) -> dict[str, str]:
    """The ids of topics that must be there: UnknownName for one that is not."""
    wanted = sorted(set(names))
    try:
        found = known_ids(client, wanted, _CALL_S)
    except KafkaException as failure:
        raise _unanswered(", ".join(wanted), failure.args[0]) from failure
    for name in wanted:
        if name not in found:
            raise _unanswered(name, KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
    return found


def known_ids(client: AdminClient, names: Collection[str], timeout_s: float) -> dict[str, str]:
    """By name, what tells a topic from another of its name, of those that are there.

    A topic that is deleted and made again has a new one.
    """
    if not names:
        return {}
    described = client.describe_topics(TopicCollection(list(names)), request_timeout=timeout_s)
    found = {}
    for name, answer in described.items():
        try:
            found[name] = str(answer.result(timeout_s).topic_id)
        except KafkaException as failure:
            if failure.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
    return found


def ids_again(client: AdminClient, names: Iterable[str]) -> dict[str, str]:
    """``ids`` of topics that were there before: a broker that comes back may not know them at once, so one that is not
    there is ServiceUnavailable.
    """
    try:
        return ids(client, names)
    except UnknownName as failure:
        raise ServiceUnavailable(
            failure.what, where=failure.where, fix="the query waits for it, or drop it"
        ) from failure


def _await_leaders(client: AdminClient, topic: str) -> None:
    """The controller answers before a broker knows of the new topic: wait until it does."""
    deadline = time.monotonic() + _CALL_S
    while not _led(client, topic):
        if time.monotonic() > deadline:
            raise ServiceUnavailable(
                f'topic "{topic}" was made, and has no leader after {_CALL_S:g} s',
                where=f'topic "{topic}"',
                fix="see the log of the broker",
            )
        time.sleep(_LOOK_S)


def _led(client: AdminClient, topic: str) -> bool:
    described = client.list_topics(topic, timeout=_CALL_S).topics[topic]
    return described.error is None and all(found.leader >= 0 for found in described.partitions.values())


def offsets(
    client: AdminClient,
    wanted: Mapping[TopicPartition, OffsetSpec],
    level: IsolationLevel = IsolationLevel.READ_COMMITTED,
    timeout_s: float = _CALL_S,
) -> dict[tuple[str, int], int]:
    """The offset of each partition that its ``OffsetSpec`` asks for, as a reader of ``level`` sees it.

    A partition may have no leader for a moment: it was made just now, or a broker comes back. Raises ServiceUnavailable
    for one that goes on without.
    """
    deadline = time.monotonic() + min(_ELECTION_S, timeout_s)
    while True:
        try:
            return _offsets(client, wanted, level, timeout_s)
        except ServiceUnavailable:
            if time.monotonic() > deadline:
                raise
        except KafkaException as failure:
            if failure.args[0].code() not in _NO_LEADER or time.monotonic() > deadline:
                raise
        time.sleep(_LOOK_S)


def _offsets(
    client: AdminClient, wanted: Mapping[TopicPartition, OffsetSpec], level: IsolationLevel, timeout_s: float
) -> dict[tuple[str, int], int]:
    answers = client.list_offsets(dict(wanted), isolation_level=level, request_timeout=timeout_s)
    found = {(place.topic, place.partition): int(answer.result(timeout_s).offset) for place, answer in answers.items()}
    for (topic, partition), offset in found.items():
        # So the library answers, without an error.
        if offset == OFFSET_INVALID:
            raise ServiceUnavailable(
                f"the broker does not know yet where {topic}[{partition}] is",
                where=f'topic "{topic}"',
                fix="it is asked again; if that goes on, see the log of the broker",
            )
    return found


def ends(client: AdminClient, wanted: Mapping[str, Iterable[int]]) -> Offsets:
    """Where partitions (topic → some of its partitions) end now."""
    places = [TopicPartition(topic, partition) for topic, partitions in wanted.items() for partition in partitions]
    found: Offsets = {topic: {} for topic in wanted}
    for (topic, partition), offset in offsets(client, {place: OffsetSpec.latest() for place in places}).items():
        found[topic][partition] = offset
    return found


def end_offsets(client: AdminClient, topics: list[str]) -> Offsets:
    """Where each of ``topics`` ends now."""
    return ends(client, {topic: partitions(client, topic) for topic in topics})


def delete(client: AdminClient, names: Iterable[str]) -> bool:
    """Delete topics, of which some may not be there; whether the broker has answered."""
    for deleted in client.delete_topics(list(names), request_timeout=_CALL_S).values():
        try:
            deleted.result(_CALL_S)
        except KafkaException as failure:
            if failure.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                return False
        except TimeoutError:
            return False
    return True


def forget_group(client: AdminClient, group: str) -> None:
    """Delete a consumer group and its offsets; one that is not there, or a silent broker, is no matter."""
    for deleted in client.delete_consumer_groups([group], request_timeout=_CALL_S).values():
        with suppress(KafkaException, TimeoutError):
            deleted.result(_CALL_S)
