"""What the source of a pack reads: all that its members do, each topic once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from dovetail.broker.topics import Offsets
from dovetail.joins.dataflow.graph import Dataflow
from dovetail.spark_jobs.state.checkpoint import parsed_offsets


def read_together(dataflows: Sequence[Dataflow]) -> Dataflow:
    """The scans alone: a source asks for topics, and after what silence they are idle."""
    return Dataflow(tuple(scan for flow in dataflows for scan in flow.scans), (), (), dataflows[0].sink)


def earliest(positions: Sequence[str]) -> str:
    """Where a pack begins whose members have read up to ``positions`` (as Spark logs them): nobody misses a record."""
    first: dict[str, dict[int, int]] = {}
    for offsets in map(parsed_offsets, positions):
        for topic, ends in offsets.items():
            before = first.setdefault(topic, dict(ends))
            # A partition that one does not know yet is read from its beginning.
            first[topic] = {place: min(end, ends[place]) for place, end in before.items() if place in ends}
    return as_logged(first)


def reached(joined_at: str, end: Offsets, topics: Iterable[str]) -> Offsets:
    """What a member has read that had read up to ``joined_at``, of a pack that has read up to ``end``."""
    before = parsed_offsets(joined_at)
    return {topic: _furthest(before.get(topic, {}), end.get(topic, {})) for topic in topics}


def as_logged(offsets: Mapping[str, Mapping[int, int]]) -> str:
    """As Spark logs them, and an origin keeps them. Who is idle is left out: operators may be told of it twice."""
    return json.dumps({topic: {str(place): end for place, end in ends.items()} for topic, ends in offsets.items()})


def _furthest(one: Mapping[int, int], other: Mapping[int, int]) -> dict[int, int]:
    return {place: max(one.get(place, 0), other.get(place, 0)) for place in {**one, **other}}
