"""Where the readings of topics begin, as offsets."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from confluent_kafka import TopicPartition
from confluent_kafka.admin import OffsetSpec

from dovetail.broker import topics
from dovetail.broker.clients import Admin
from dovetail.broker.topics import Offsets
from dovetail.changelog.errors import Unsupported
from dovetail.changelog.wording import counted

FirstOffsets = dict[int, int]
"""Partition → offset of the first record that a reading wants."""

_FIRST_TIME_MS = 100_000_000_000
"""A lone number below is an offset, from it on a time in ms (1973): no partition holds that many records."""


class ReadStart(Protocol):
    """A reading of a topic, and where it is to begin."""

    @property
    def topic(self) -> str: ...

    @property
    def start_offsets(self) -> str:
        """'earliest', 'latest', a time in ms (below 0: before now), offsets per partition '5,3,11', or ''."""
        ...

    @property
    def starts_latest(self) -> bool:
        """Where ``start_offsets`` says nothing: whether it begins at the end of the topic, or at its beginning."""
        ...


@dataclass(frozen=True)
class Beginning:
    """From where a query reads.

    first_offsets  by reading
    history        topic → partition → where it ended at the query's first start; empty where that does not matter
    """

    first_offsets: Sequence[FirstOffsets]
    history: Offsets = field(default_factory=dict)


def resolved_first_offsets(client: Admin, readings: Sequence[ReadStart]) -> list[FirstOffsets]:
    """Where each reading begins, as offsets of records that are there, or are yet to come.

    Asked once in a query's life: "latest" means its very first start, and what is deleted after it is missed.
    """
    return [_resolved(client, reading, topics.partitions(client, reading.topic)) for reading in readings]


def _resolved(client: Admin, reading: ReadStart, partitions: Sequence[int]) -> FirstOffsets:
    there = _offsets(client, reading.topic, partitions, OffsetSpec.earliest())
    wanted = _starts(client, reading, partitions)
    return {partition: max(offset, there[partition]) for partition, offset in wanted.items()}


def _starts(client: Admin, reading: ReadStart, partitions: Sequence[int]) -> FirstOffsets:
    wish = reading.start_offsets or ("latest" if reading.starts_latest else "earliest")
    if wish == "earliest":
        return dict.fromkeys(partitions, 0)
    if wish == "latest":
        return _offsets(client, reading.topic, partitions, OffsetSpec.latest())
    numbers = _numbers(wish, reading)
    if len(numbers) == 1 and numbers[0] < 0:
        return _offsets(
            client, reading.topic, partitions, OffsetSpec.for_timestamp(time.time_ns() // 1_000_000 + numbers[0])
        )
    if len(numbers) == 1 and numbers[0] >= _FIRST_TIME_MS:
        return _offsets(client, reading.topic, partitions, OffsetSpec.for_timestamp(numbers[0]))
    if len(numbers) != len(partitions):
        raise Unsupported(
            f"seek_to gives {counted(len(numbers), 'offset')}, and {reading.topic} has "
            f"{counted(len(partitions), 'partition')}",
            where=f'topic "{reading.topic}"',
            fix=f"give {counted(len(partitions), 'offset')}, a time, 'earliest' or 'latest'",
        )
    return dict(zip(partitions, numbers, strict=True))


def _numbers(wish: str, reading: ReadStart) -> list[int]:
    try:
        return [int(part) for part in wish.split(",")]
    except ValueError:
        raise Unsupported(
            f"seek_to = '{wish}' is not understood",
            where=f'topic "{reading.topic}"',
            fix="give 'earliest', 'latest', a time, or an offset per partition: '5,3,11'",
        ) from None


def _offsets(client: Admin, topic: str, partitions: Iterable[int], spec: OffsetSpec) -> FirstOffsets:
    answers = topics.offsets(client, {TopicPartition(topic, partition): spec for partition in partitions})
    # A time after the last record has no offset (-1): the end it is.
    missing = [partition for (_, partition), offset in answers.items() if offset < 0]
    found = {partition: offset for (_, partition), offset in answers.items()}
    return {**found, **(_offsets(client, topic, missing, OffsetSpec.latest()) if missing else {})}


def least_offsets(readings: Sequence[ReadStart], first_offsets: Sequence[Mapping[int, int]]) -> Offsets:
    """Topic → partition → the least offset that a reading wants."""
    least: Offsets = {}
    for reading, wanted in zip(readings, first_offsets, strict=True):
        of_topic = least.setdefault(reading.topic, {})
        for partition, offset in wanted.items():
            of_topic[partition] = min(offset, of_topic.get(partition, offset))
    return least
