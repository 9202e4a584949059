"""Idle partitions: those that have been read to their end and give nothing new.

Which ones are idle is decided once, by the clock of the process that plans the batches, and becomes part of the offsets
that Spark logs: so a batch runs when a partition falls silent, though there is no record to read, and a replay of it
sees the same.

    {"clicks": {"0": 120, "1": 7}, "#idle": {"clicks/1": 30000}}      partition 1 was silent for 30 s or longer
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dovetail.joins.dataflow.graph import Dataflow
from dovetail.spark_jobs.stages.decode import Silence
from dovetail.spark_jobs.state.checkpoint import IDLE, JsonOffsets


def as_json(offsets: Mapping[str, Mapping[int, int]]) -> JsonOffsets:
    """As Spark logs them."""
    return {topic: {str(place): offset for place, offset in wanted.items()} for topic, wanted in offsets.items()}


def idle_times(dataflow: Dataflow) -> dict[str, tuple[int, ...]]:
    """Topic → the lengths of silence (ms) after which a scan of it takes a partition for idle, ascending."""
    found: dict[str, set[int]] = defaultdict(set)
    for scan in dataflow.scans:
        if scan.watermark is not None and scan.watermark.idle_ms is not None:
            found[scan.topic].add(scan.watermark.idle_ms)
    return {topic: tuple(sorted(times)) for topic, times in sorted(found.items())}


@dataclass
class Idleness:
    """For how long each partition has given nothing; the clock is handed in, in seconds.

    times   by topic, see ``idle_times``
    """

    times: Mapping[str, Sequence[int]]
    _ends: dict[str, int] = field(default_factory=dict)
    _since_s: dict[str, float] = field(default_factory=dict)

    def look(self, ends: JsonOffsets, now_s: float, waited_s: float = 0.0) -> None:
        """The partitions end at ``ends`` now. The broker was waited for, ``waited_s``: that is no silence, since nobody
        can write while it is away.
        """
        for place, end in self._places(ends):
            if self._ends.get(place) != end:
                self._ends[place], self._since_s[place] = end, now_s
            else:
                self._since_s[place] += waited_s

    def idle(self, start: JsonOffsets, end: JsonOffsets, now_s: float) -> dict[str, int]:
        """What a batch from ``start`` to ``end`` knows of idle partitions: topic/partition → ms of silence.

        One that was idle at ``start`` stays so until it gives a record: a restart of the process wakes nobody.
        """
        before = start.get(IDLE, {})
        found = {}
        for place, reached in self._places(end):
            topic, _, partition = place.rpartition("/")
            if reached != start.get(topic, {}).get(partition) or reached != self._ends.get(place):
                continue
            silent_ms = (now_s - self._since_s[place]) * 1_000
            passed = [time for time in self.times[topic] if time <= max(silent_ms, before.get(place, 0))]
            if passed:
                found[place] = passed[-1]
        return found

    def next_s(self, now_s: float) -> float:
        """In how many seconds a partition that stays silent has been so for the next of its lengths; inf: never."""
        left_s = (
            time / 1_000 - (now_s - since_s)
            for place, since_s in self._since_s.items()
            for time in self.times[place.rpartition("/")[0]]
        )
        return min((left for left in left_s if left > 0), default=math.inf)

    def _places(self, offsets: JsonOffsets) -> list[tuple[str, int]]:
        return [
            (f"{topic}/{partition}", offset)
            for topic in self.times
            for partition, offset in offsets.get(topic, {}).items()
        ]


def silences(start: JsonOffsets, end: JsonOffsets) -> tuple[Silence, ...]:
    """The partitions that are idle at ``end``, and were not, or for a shorter time, at ``start``."""
    before = start.get(IDLE, {})
    return tuple(
        Silence(place.rpartition("/")[0], int(place.rpartition("/")[2]), idle_ms)
        for place, idle_ms in sorted(end.get(IDLE, {}).items())
        if idle_ms > before.get(place, 0)
    )


def of_topics(offsets: JsonOffsets) -> JsonOffsets:
    """The offsets alone."""
    return {topic: found for topic, found in offsets.items() if topic != IDLE}
