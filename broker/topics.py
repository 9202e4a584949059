"""Topics: made where missing, asked for partitions and offsets."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from contextlib import suppress

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from changelog.errors import ServiceUnavailable, UnknownName

PartitionOffsets = Mapping[int, int]
"""Partition → offset of the next record."""
Offsets = dict[str, dict[int, int]]
"""Topic → partition → offset of the next record."""

_CALL_S = 10.0
_LOOK_S = 0.02


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
    if described.error is not None or not described.partitions:
        raise UnknownName(
            f'topic "{topic}" does not exist', where="the query's inputs", fix=f'create the topic "{topic}" first'
        )
    return sorted(described.partitions)


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


def offsets(client: AdminClient, wanted: Mapping[TopicPartition, OffsetSpec]) -> dict[tuple[str, int], int]:
    """The offset of each partition that its ``OffsetSpec`` asks for, as a read_committed reader sees it."""
    answers = client.list_offsets(dict(wanted), isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=_CALL_S)
    return {(place.topic, place.partition): int(answer.result(_CALL_S).offset) for place, answer in answers.items()}


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
