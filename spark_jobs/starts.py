"""Where the scans of a dataflow begin."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from changelog.errors import Unsupported
from joins.dataflow import Dataflow, Scan
from spark_jobs import topics

Offsets = dict[str, dict[int, int]]
"""Topic → partition → offset."""
Starts = dict[int, int]
"""Partition → offset of the first record that a scan wants; 0: all there is."""

_FIRST_TIME_MS = 100_000_000_000
"""A lone number below is an offset, from it on a time in ms (1973): no partition holds that many records."""


def topics_of(dataflow: Dataflow) -> list[str]:
    return sorted({scan.topic for scan in dataflow.scans})


def resolved_starts(client: AdminClient, dataflow: Dataflow) -> list[Starts]:
    """Where each scan begins, as offsets. Asked once in a query's life: "latest" means its very first start."""
    return [_starts(client, scan, topics.partitions(client, scan.topic)) for scan in dataflow.scans]


def _starts(client: AdminClient, scan: Scan, partitions: Sequence[int]) -> Starts:
    wish = scan.start_offsets or ("latest" if scan.starts_latest else "earliest")
    if wish == "earliest":
        return dict.fromkeys(partitions, 0)
    if wish == "latest":
        return _asked(client, scan.topic, partitions, OffsetSpec.latest())
    numbers = _numbers(wish, scan)
    if len(numbers) == 1 and numbers[0] < 0:
        return _asked(
            client, scan.topic, partitions, OffsetSpec.for_timestamp(time.time_ns() // 1_000_000 + numbers[0])
        )
    if len(numbers) == 1 and numbers[0] >= _FIRST_TIME_MS:
        return _asked(client, scan.topic, partitions, OffsetSpec.for_timestamp(numbers[0]))
    if len(numbers) != len(partitions):
        raise Unsupported(
            f"seek_to gives {len(numbers)} offsets, and {scan.topic} has {len(partitions)} partitions",
            where=f'topic "{scan.topic}"',
            fix=f"give {len(partitions)} offsets, a time, 'earliest' or 'latest'",
        )
    return dict(zip(partitions, numbers, strict=True))


def _numbers(wish: str, scan: Scan) -> list[int]:
    try:
        return [int(part) for part in wish.split(",")]
    except ValueError:
        raise Unsupported(
            f"seek_to = '{wish}' is not understood",
            where=f'topic "{scan.topic}"',
            fix="give 'earliest', 'latest', a time, or an offset per partition: '5,3,11'",
        ) from None


def _asked(client: AdminClient, topic: str, partitions: Iterable[int], spec: OffsetSpec) -> Starts:
    answers = topics.offsets(client, {TopicPartition(topic, partition): spec for partition in partitions})
    # A time after the last record has no offset (-1): the end it is.
    missing = [partition for (_, partition), offset in answers.items() if offset < 0]
    found = {partition: offset for (_, partition), offset in answers.items()}
    return {**found, **(_asked(client, topic, missing, OffsetSpec.latest()) if missing else {})}


def least_starts(dataflow: Dataflow, starts: Sequence[Mapping[int, int]]) -> Offsets:
    """Topic → partition → the least offset that a scan wants."""
    least: Offsets = {}
    for scan, wanted in zip(dataflow.scans, starts, strict=True):
        of_topic = least.setdefault(scan.topic, {})
        for partition, offset in wanted.items():
            of_topic[partition] = min(offset, of_topic.get(partition, offset))
    return least


def first_offsets(client: AdminClient, dataflow: Dataflow, starts: Sequence[Mapping[int, int]]) -> Offsets:
    """``least_starts``, where the records are gone that it names: those of the first ones that are there."""
    least = least_starts(dataflow, starts)
    places = [TopicPartition(topic, partition) for topic, wanted in least.items() for partition in wanted]
    there = topics.offsets(client, {place: OffsetSpec.earliest() for place in places})
    return {
        topic: {partition: max(offset, there[topic, partition]) for partition, offset in wanted.items()}
        for topic, wanted in least.items()
    }
