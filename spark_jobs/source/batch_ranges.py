"""What there is to read between two places of the inputs, and where the first batch begins."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from dovetail.broker.offset_ranges import OffsetRange
from dovetail.broker.start_offsets import least_offsets
from dovetail.broker.topics import PartitionOffsets
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.spark_jobs.source.idle import as_json, of_topics
from dovetail.spark_jobs.state.checkpoint import JsonOffsets


def begins_at(dataflow: Dataflow, scan_starts: Sequence[PartitionOffsets], resumed_at: str) -> JsonOffsets:
    """Where the first batch of a checkpoint begins."""
    if resumed_at:
        found: JsonOffsets = json.loads(resumed_at)
        return found
    return as_json(least_offsets(dataflow.scans, scan_starts))


def ranges_between(start: JsonOffsets, end: JsonOffsets, topics: Collection[str]) -> list[OffsetRange]:
    """The offsets of ``topics`` from ``start`` to ``end``.

    A batch of a pack that is run again may have been planned for a member that has left: its topics are passed over.
    """
    ranges = [
        OffsetRange(topic, int(partition), start.get(topic, {}).get(partition, 0), offset)
        for topic, ends in of_topics(end).items()
        if topic in topics
        for partition, offset in ends.items()
    ]
    return [one for one in ranges if one.length > 0]
