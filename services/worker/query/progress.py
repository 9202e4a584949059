"""What the workers of a query report in the catalog, merged: each knows its own partitions only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

GONE = ""
"""Under which name the counts of workers that are gone stand; no worker has it."""


@dataclass(frozen=True)
class Report:
    """What one worker has done of a query.

    offsets   partition → end of what is answered and committed
    counts    since its start
    batch_ms  how long its last batch took
    held      what it keeps, as ``CacheOccupancy`` has it
    waits     why it waits for a service; '' while it does not
    """

    worker: str
    offsets: Mapping[int, int]
    counts: Mapping[str, int]
    batch_ms: int
    held: Mapping[str, Any] = field(default_factory=dict)
    waits: str = ""


def merged(
    before: Mapping[str, Any],
    topic: str,
    first_offsets: Mapping[int, int],
    report: Report,
    live: Collection[str] | None = None,
) -> dict[str, Any]:
    """The progress of the query with ``report`` in it. Of workers that are not ``live`` the counts alone are kept, as
    one sum: each start of one is another worker.

    Several write at once, and the last one wins: each looks again soon, and puts in what is missing of its own.
    """
    known = before.get("offsets", {}).get(topic, {})
    offsets = {int(partition): int(offset) for partition, offset in known.items()}
    for partition, offset in report.offsets.items():
        offsets[partition] = max(offset, offsets.get(partition, 0))
    by_worker = {**_summed(before.get("by_worker", {}), live), report.worker: dict(report.counts)}
    total: Counter[str] = Counter()
    for counts in by_worker.values():
        total.update(counts)
    return {
        "starts": {topic: _texts(first_offsets)},
        "offsets": {topic: _texts(offsets)},
        "counts": dict(total),
        "by_worker": by_worker,
        "held_by_worker": {**_of_living(before.get("held_by_worker", {}), live), report.worker: dict(report.held)},
        "waits_by_worker": {**_of_living(before.get("waits_by_worker", {}), live), report.worker: report.waits},
        "batch_ms": report.batch_ms,
    }


def _of_living(by_worker: Mapping[str, Any], live: Collection[str] | None) -> dict[str, Any]:
    return {worker: said for worker, said in by_worker.items() if live is None or worker in live}


def _summed(by_worker: Mapping[str, Mapping[str, int]], live: Collection[str] | None) -> dict[str, dict[str, int]]:
    kept: dict[str, Counter[str]] = {}
    for worker, counts in by_worker.items():
        kept.setdefault(worker if live is None or worker in live else GONE, Counter()).update(counts)
    return {worker: dict(counts) for worker, counts in kept.items()}


def waits_for(progress: Mapping[str, Any], workers: Collection[str]) -> str:
    """Why one of these workers waits for a service; '' while none does. What a worker that is gone has said last counts
    no more.
    """
    reported = progress.get("waits_by_worker", {})
    return next(filter(None, (reported.get(worker, "") for worker in sorted(workers))), "")


def _texts(offsets: Mapping[int, int]) -> dict[str, int]:
    """As JSON has them."""
    return {str(partition): offset for partition, offset in sorted(offsets.items())}
