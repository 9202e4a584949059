"""What one look at a query finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dovetail.sql.catalog import Query

Ends = Mapping[str, Mapping[int, int]]
"""Topic → partition → where it ends."""
UNKNOWN = float("nan")


@dataclass(frozen=True)
class QuerySample:
    """Counts go on over restarts; NaN: not known.

    ended         sum of the ends of its inputs, as they were at this look
    read          sum of the offsets that it has answered, of the same partitions
    watermark_ms  the least of its inputs
    """

    at_ms: float
    rows_in: float = UNKNOWN
    rows_out: float = UNKNOWN
    ended: float = UNKNOWN
    read: float = UNKNOWN
    batch_ms: float = UNKNOWN
    watermark_ms: float = UNKNOWN
    late: float = 0.0
    rejected: float = 0.0
    restarts: float = 0.0
    state_rows: float = UNKNOWN
    state_bytes: float = UNKNOWN

    @staticmethod
    def of(query: Query, ends: Ends, at_ms: float) -> QuerySample:
        """``ends``: of topics, as far as they are known."""
        progress = query.progress
        counts = progress.get("counts", {})
        sizes = list(progress.get("state", {}).values())
        ended, read = _places(offsets_of(query), ends)
        return QuerySample(
            at_ms,
            rows_in=_figure(counts, "rows_in"),
            rows_out=_figure(counts, "rows_out"),
            ended=ended,
            read=read,
            batch_ms=_figure(progress, "batch_ms"),
            watermark_ms=float(min(progress.get("watermarks", {}).values(), default=UNKNOWN)),
            late=float(sum(progress.get("late", {}).values())),
            rejected=float(counts.get("rejected", 0)),
            restarts=float(query.restarts),
            state_rows=float(sum(rows for rows, _ in sizes)) if sizes else UNKNOWN,
            state_bytes=float(sum(size for _, size in sizes)) if sizes else UNKNOWN,
        )


def offsets_of(query: Query) -> Mapping[str, Mapping[str, int]]:
    """Topic → partition → end of what the query has answered; empty before its first batch."""
    found: Mapping[str, Mapping[str, int]] = query.progress.get("offsets") or query.progress.get("starts") or {}
    return found


def _figure(members: Mapping[str, Any], name: str) -> float:
    return float(members.get(name, UNKNOWN))


def _places(offsets: Mapping[str, Mapping[str, int]], ends: Ends) -> tuple[float, float]:
    """Where a topic's end is not known, the whole is not."""
    if not offsets or any(topic not in ends for topic in offsets):
        return UNKNOWN, UNKNOWN
    pairs = [
        (end, min(int(partitions.get(str(partition), 0)), end))
        for topic, partitions in offsets.items()
        for partition, end in ends[topic].items()
    ]
    return float(sum(end for end, _ in pairs)), float(sum(reached for _, reached in pairs))
