"""In which order the history of the inputs is read, where rows are answered once.

A row that is answered once asks what the other side holds when it comes. So of the history, which is what the topics
held at the query's first start, the side that is asked is read to its end before the side that asks:

    visits LATEST JOIN users                   users, then visits
    (a ASOF JOIN b) LATEST JOIN c              c, then b, then a

The rows that come in the meantime wait with the side that asks. Everything follows from where a batch begins, and from
offsets that the checkpoint keeps: a restart in the midst goes on in the same order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dovetail.broker.topics import Offsets, PartitionOffsets
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.spark_jobs.state.checkpoint import JsonOffsets


@dataclass(frozen=True)
class HistoryPhase:
    """Topics whose history is read next.

    whole   in one batch, of any size: they ask each other, as the sides of a self join do, and only in the same batch
            the ones that are asked are there first
    """

    topics: frozenset[str]
    whole: bool = False


def phases(dataflow: Dataflow, first_offsets: Sequence[PartitionOffsets], history: Offsets) -> list[HistoryPhase]:
    """In this order the history of what is asked is read, before anything else.

    first_offsets   by scan
    history         topic → partition → where it ends; empty where no rows are answered once
    """
    awaited = _awaited(dataflow, first_offsets, history)
    left, found = {topic for others in awaited.values() for topic in others}, list[HistoryPhase]()
    while left:
        free = {topic for topic in left if not awaited[topic] & left}
        found.append(HistoryPhase(frozenset(free or left), whole=not free))
        left -= found[-1].topics
    return found


def _awaited(
    dataflow: Dataflow, first_offsets: Sequence[PartitionOffsets], history: Offsets
) -> dict[str, frozenset[str]]:
    """Topic → those whose history must be there before its own is read; '' stands for all that comes later."""
    old = {
        number
        for number, scan in enumerate(dataflow.scans)
        if any(first_offsets[number].get(partition, 0) < end for partition, end in history.get(scan.topic, {}).items())
    }
    awaited: dict[str, frozenset[str]] = defaultdict(frozenset)
    for node in dataflow.nodes:
        if node.operator.answers_once:
            left, right = (dataflow.scans_behind(edge) for edge in node.inputs)
            awaited_topics = frozenset(dataflow.scans[number].topic for number in right & old)
            for topic in ("", *(dataflow.scans[number].topic for number in left & old)):
                awaited[topic] |= awaited_topics
    return awaited


def next_end(
    start: JsonOffsets, ends: JsonOffsets, order: Sequence[HistoryPhase], history: Offsets, limit: int | None
) -> JsonOffsets:
    """Where a batch from ``start`` ends, of topics that end at ``ends`` now: within the first phase that has not been
    read, else anywhere; after ``limit`` records, None: at the end.
    """
    for phase in order:
        reached = {
            topic: {partition: _within(phase, topic, partition, start, end, history) for partition, end in of.items()}
            for topic, of in ends.items()
        }
        if any(end > _position(start, topic, place) for topic, of in reached.items() for place, end in of.items()):
            return limited(start, reached, None if phase.whole else limit)
    return limited(start, ends, limit)


def _within(phase: HistoryPhase, topic: str, partition: str, start: JsonOffsets, end: int, history: Offsets) -> int:
    position = _position(start, topic, partition)
    if topic not in phase.topics:
        return position
    # A partition that has lost records ends before its history did: that cannot be waited for.
    return max(position, min(end, history[topic].get(int(partition), 0)))


def _position(start: JsonOffsets, topic: str, partition: str) -> int:
    return start.get(topic, {}).get(partition, 0)


def limited(start: JsonOffsets, ends: JsonOffsets, limit: int | None) -> JsonOffsets:
    """The ends of a batch of about ``limit`` records, which takes from each partition its share of what is left; of all
    that is left where there is no limit.
    """
    if limit is None:
        return ends
    left: Mapping[tuple[str, str], int] = {
        (topic, partition): max(end - _position(start, topic, partition), 0)
        for topic, wanted in ends.items()
        for partition, end in wanted.items()
    }
    total = sum(left.values())
    if total <= limit:
        return ends
    # Rounded up: a partition with few records left would otherwise wait for the others to be read.
    return {
        topic: {
            partition: end - left[topic, partition] + -(-left[topic, partition] * limit // total)
            for partition, end in wanted.items()
        }
        for topic, wanted in ends.items()
    }
