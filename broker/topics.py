"""Topics: made where missing, asked for partitions and offsets."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from confluent_kafka import OFFSET_INVALID, IsolationLevel, TopicCollection, TopicPartition
from confluent_kafka.admin import ConfigResource, NewPartitions, NewTopic, OffsetSpec, ResourceType

from dovetail.broker.clients import Admin
from dovetail.broker.errors import BrokerError, BrokerFault, answer
from dovetail.changelog.errors import DovetailError, ServiceUnavailable, UnknownName

PartitionOffsets = Mapping[int, int]
"""Partition → offset of the next record."""
Offsets = dict[str, dict[int, int]]
"""Topic → partition → offset of the next record."""

_CALL_S = 10.0
_LOOK_S = 0.02
_ELECTION_S = 2.0
_KEEPS_ALL = {"retention.ms": "-1"}
FRAME_BYTES = 512
"""What a batch of one message has around it, at the most."""

GONE_FIX = "drop the query and create it again: a topic that is made again is another one"


def partitions(client: Admin, topic: str) -> list[int]:
    """The partitions of ``topic``; UnknownName if there is no such topic."""
    try:
        described = client.list_topics(topic, timeout=_CALL_S).topics[topic]
    except BrokerError as failure:
        raise ServiceUnavailable(
            f"the broker does not answer: {failure.reason}",
            where=f'topic "{topic}"',
            fix="start the broker (dovetail up), or set brokers to where it listens",
        ) from failure
    if described.error is not None:
        raise _unanswered(topic, BrokerError.of(described.error))
    if not described.partitions:
        raise _unanswered(topic, BrokerError("no leader is known", BrokerFault.NO_LEADER))
    return sorted(described.partitions)


def _unanswered(topic: str, error: BrokerError) -> DovetailError:
    if error.fault is BrokerFault.NO_TOPIC:
        return UnknownName(
            f'topic "{topic}" does not exist', where="the query's inputs", fix=f'create the topic "{topic}" first'
        )
    return ServiceUnavailable(
        f"the broker does not say what it has of {topic}: {error.reason}",
        where=f'topic "{topic}"',
        fix="it is asked again; if that goes on, see the log of the broker",
    )


def ensure(client: Admin, wanted: Mapping[str, int]) -> None:
    """Make every topic of ``wanted`` (name → partitions) that is not there; one that is stays as it is. Of one that is
    made no record goes for its age.
    """
    existing = client.list_topics(timeout=_CALL_S).topics
    missing = [NewTopic(name, count, config=_KEEPS_ALL) for name, count in wanted.items() if name not in existing]
    for made in client.create_topics(missing).values() if missing else ():
        try:
            answer(made, _CALL_S)
        except BrokerError as failure:
            if failure.fault is not BrokerFault.TOPIC_EXISTS:
                raise
    for topic in missing:
        _await_leaders(client, topic.topic)


def is_there(client: Admin, topic: str) -> bool:
    return topic in known_ids(client, [topic], _CALL_S)


def expect_output(client: Admin, topic: str) -> None:
    """Raises ServiceUnavailable where the topic that a query has written to is not there: made again, and empty, it
    would lack the rows that later changes take back.
    """
    if not is_there(client, topic):
        raise ServiceUnavailable(
            f'the output topic "{topic}" is gone, and with it the rows that were written',
            where=f'topic "{topic}"',
            fix="bring it back, and the query goes on; or DROP what writes it, and create it again",
        )


def widen(client: Admin, topic: str, count: int) -> None:
    """Give a topic ``count`` partitions, if it has fewer."""
    if len(partitions(client, topic)) < count:
        for made in client.create_partitions([NewPartitions(topic, count)]).values():
            answer(made, _CALL_S)


def message_bytes(client: Admin, topic: str) -> int:
    """The largest message that a topic takes, key, headers and value together."""
    return int(topic_config(client, topic)["max.message.bytes"]) - FRAME_BYTES


def topic_config(client: Admin, topic: str) -> dict[str, str]:
    """The settings of a topic, defaults too, by name."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    described = answer(client.describe_configs([resource], request_timeout=_CALL_S)[resource], _CALL_S)
    return {name: str(entry.value) for name, entry in described.items()}


def unanswered(client: Admin, names: Collection[str], timeout_s: float) -> tuple[set[str], set[str]]:
    """Those of the topics for which nobody answers now: of which a partition has no leader, and that are not there.
    Raises BrokerError.
    """
    described = client.list_topics(timeout=timeout_s).topics
    absent = set(names) - described.keys()
    led_by = {name: [found.leader for found in described[name].partitions.values()] for name in {*names} - absent}
    return {name for name, leaders in led_by.items() if min(leaders, default=0) < 0}, absent


def compacted_after_ms(client: Admin, topic: str) -> int | None:
    """How old a record is at least that goes because a later one has its key; None where none does."""
    config = topic_config(client, topic)
    return int(config["min.compaction.lag.ms"]) if "compact" in config["cleanup.policy"] else None


def any_is_compacted(client: Admin, names: Iterable[str]) -> bool:
    """Whether records of one of these topics may go because later ones have their keys."""
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in sorted(set(names))]
    future = client.describe_configs(resources, request_timeout=_CALL_S)
    return any("compact" in answer(future[one], _CALL_S)["cleanup.policy"].value for one in resources)


def ids(client: Admin, names: Iterable[str]) -> dict[str, str]:
    """The ids of topics that must be there: UnknownName for one that is not."""
    wanted = sorted(set(names))
    try:
        found = known_ids(client, wanted, _CALL_S)
    except BrokerError as failure:
        raise _unanswered(", ".join(wanted), failure) from failure
    for name in wanted:
        if name not in found:
            raise _unanswered(name, BrokerError("it is not there", BrokerFault.NO_TOPIC))
    return found


def known_ids(client: Admin, names: Collection[str], timeout_s: float) -> dict[str, str]:
    """By name, what tells a topic from another of its name, of those that are there.

    A topic that is deleted and made again has a new one.
    """
    return {name: found.id for name, found in described(client, names, timeout_s).items()}


@dataclass(frozen=True, slots=True)
class DescribedTopic:
    """``id``: what tells it from another topic of its name."""

    id: str
    partitions: Sequence[int]


def described(client: Admin, names: Collection[str], timeout_s: float) -> dict[str, DescribedTopic]:
    """Those topics that are there, by name. Raises BrokerError."""
    if not names:
        return {}
    found = {}
    for name, future in client.describe_topics(TopicCollection(list(names)), request_timeout=timeout_s).items():
        try:
            description = answer(future, timeout_s)
        except BrokerError as failure:
            if failure.fault is not BrokerFault.NO_TOPIC:
                raise
        else:
            found[name] = DescribedTopic(
                str(description.topic_id), [partition.id for partition in description.partitions]
            )
    return found


def ids_again(client: Admin, names: Iterable[str]) -> dict[str, str]:
    """``ids`` of topics that were there before: a broker that comes back may not know them at once, so one that is not
    there is ServiceUnavailable.
    """
    try:
        return ids(client, names)
    except UnknownName as failure:
        gone = failure.what.replace("does not exist", "is gone")
        raise ServiceUnavailable(gone, where=failure.where, fix=GONE_FIX) from failure


def _await_leaders(client: Admin, topic: str) -> None:
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


def _led(client: Admin, topic: str) -> bool:
    described = client.list_topics(topic, timeout=_CALL_S).topics[topic]
    return described.error is None and all(found.leader >= 0 for found in described.partitions.values())


def offsets(
    client: Admin,
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
        except BrokerError as failure:
            if failure.fault is not BrokerFault.NO_LEADER or time.monotonic() > deadline:
                raise
        time.sleep(_LOOK_S)


def _offsets(
    client: Admin, wanted: Mapping[TopicPartition, OffsetSpec], level: IsolationLevel, timeout_s: float
) -> dict[tuple[str, int], int]:
    promised = client.list_offsets(dict(wanted), isolation_level=level, request_timeout=timeout_s)
    found = {
        (place.topic, place.partition): int(answer(future, timeout_s).offset) for place, future in promised.items()
    }
    for (topic, partition), offset in found.items():
        # So the library answers, without an error.
        if offset == OFFSET_INVALID:
            raise BrokerError(f"it is not known yet where {topic}[{partition}] is", BrokerFault.NO_LEADER)
    return found


def ends(client: Admin, wanted: Mapping[str, Iterable[int]]) -> Offsets:
    """Where partitions (topic → some of its partitions) end now."""
    return _each(client, wanted, OffsetSpec.latest())


def begins(client: Admin, wanted: Mapping[str, Iterable[int]]) -> Offsets:
    """The first record of partitions (topic → some of its partitions) that is there still."""
    return _each(client, wanted, OffsetSpec.earliest())


def _each(client: Admin, wanted: Mapping[str, Iterable[int]], spec: OffsetSpec) -> Offsets:
    places = [TopicPartition(topic, partition) for topic, partitions in wanted.items() for partition in partitions]
    found: Offsets = {topic: {} for topic in wanted}
    for (topic, partition), offset in offsets(client, dict.fromkeys(places, spec)).items():
        found[topic][partition] = offset
    return found


def end_offsets(client: Admin, topics: list[str]) -> Offsets:
    """Where each of ``topics`` ends now."""
    return ends(client, {topic: partitions(client, topic) for topic in topics})


def delete(client: Admin, names: Iterable[str]) -> bool:
    """Delete topics, of which some may not be there; whether the broker has answered."""
    for deleted in client.delete_topics(list(names), request_timeout=_CALL_S).values():
        try:
            answer(deleted, _CALL_S)
        except BrokerError as failure:
            if failure.fault is not BrokerFault.NO_TOPIC:
                return False
    return True


def forget_group(client: Admin, group: str) -> None:
    """Delete a consumer group and its offsets; one that is not there, or a silent broker, is no matter."""
    for deleted in client.delete_consumer_groups([group], request_timeout=_CALL_S).values():
        with suppress(BrokerError):
            answer(deleted, _CALL_S)
