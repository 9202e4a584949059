"""What becomes of each dead letter of a replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from dovetail.sql.catalog.like import matches

BEFORE = "was put back before"
OTHER_REASON = "left: another reason"
NO_SOURCE = "left: its source is not known"
CUT = "left: the letter holds only its beginning"
NO_TOPIC = "left: the topic is not there"
TOO_LARGE = "left: larger than the topic takes"
BACK = "put back"


@dataclass(frozen=True)
class Target:
    """A topic that dead letters came from; ``message_bytes``: the most that it takes."""

    partitions: int
    message_bytes: int


def outcomes(
    rows: pa.Table, sizes: pa.ChunkedArray, replayed: pa.Array, reasons: Sequence[str], targets: Mapping[str, Target]
) -> pa.Array:
    """The outcome of each of ``rows`` (DEAD_LETTER_SCHEMA): the first that is true of it.

    sizes      of the records, in bytes
    replayed   when each was put back, NULL where it was not
    reasons    patterns, of which one must match; none: any reason will do
    targets    by name, those that are there
    """
    topics = rows.column("source_topic")
    largest = pa.array([targets[name].message_bytes if name in targets else 0 for name in topics.to_pylist()])
    conditions = {
        BEFORE: pc.is_valid(replayed),
        OTHER_REASON: pc.invert(_chosen(rows.column("reason"), reasons)),
        NO_SOURCE: pc.or_(pc.is_null(topics), pc.is_null(rows.column("source_offset"))),
        CUT: pc.is_valid(rows.column("whole_bytes")),
        NO_TOPIC: pc.invert(pc.is_in(topics, pa.array(list(targets), pa.string()))),
        TOO_LARGE: pc.greater(sizes, largest),
    }
    cases = pc.make_struct(*(_flat(condition) for condition in conditions.values()))
    return pc.case_when(cases, *conditions, BACK)


def _chosen(reasons: pa.ChunkedArray, patterns: Sequence[str]) -> pa.ChunkedArray:
    known = pc.fill_null(reasons, "")
    if not patterns:
        return pc.is_valid(known)
    distinct = pc.unique(known).to_pylist()
    return pc.is_in(
        known, pa.array([one for one in distinct if any(matches(one, like) for like in patterns)], pa.string())
    )


def _flat(condition: pa.Array | pa.ChunkedArray) -> pa.Array:
    return condition.combine_chunks() if isinstance(condition, pa.ChunkedArray) else condition
