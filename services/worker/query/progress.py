"""What the workers of a query report in the catalog, merged: each knows its own partitions only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Report:
    """What one worker has done of a query.

    offsets   partition → end of what is answered and committed
    counts    since its start
    batch_ms  how long its last batch took
    held      what it keeps, as ``Held`` tells it
    """

    worker: str
    offsets: Mapping[int, int]
    counts: Mapping[str, int]
    batch_ms: int
    held: Mapping[str, Any] = field(default_factory=dict)


def merged(before: Mapping[str, Any], topic: str, first_offsets: Mapping[int, int], report: Report) -> dict[str, Any]:
    """The progress of the query with ``report`` in it.

    Several write at once, and the last one wins: each looks again soon, and puts in what is missing of its own.
    """
    known = before.get("offsets", {}).get(topic, {})
    offsets = {int(partition): int(offset) for partition, offset in known.items()}
    for partition, offset in report.offsets.items():
        offsets[partition] = max(offset, offsets.get(partition, 0))
    by_worker = {**before.get("by_worker", {}), report.worker: dict(report.counts)}
    total: Counter[str] = Counter()
    for counts in by_worker.values():
        total.update(counts)
    return {
        "starts": {topic: _texts(first_offsets)},
        "offsets": {topic: _texts(offsets)},
        "counts": dict(total),
        "by_worker": by_worker,
        "held_by_worker": {**before.get("held_by_worker", {}), report.worker: dict(report.held)},
        "batch_ms": report.batch_ms,
    }


def _texts(offsets: Mapping[int, int]) -> dict[str, int]:
    """As JSON has them."""
    return {str(partition): offset for partition, offset in sorted(offsets.items())}
