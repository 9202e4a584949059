"""Where the event time of a query's inputs stands, and which partition holds it back."""

from __future__ import annotations

from datetime import UTC, datetime

from dovetail.sql.catalog import Query


def watermark_texts(query: Query) -> dict[str, str]:
    """By input, as its runner has last reported: ``2026-05-01 12:00:00 (partition 1)``."""
    at, partitions = query.progress.get("watermarks", {}), query.progress.get("held_by", {})
    return {name: _text(at.get(name), partitions.get(name)) for name in sorted({**at, **partitions})}


def _text(at_ms: int | None, partition: int | None) -> str:
    at = "none yet" if at_ms is None else str(datetime.fromtimestamp(at_ms / 1000, UTC).replace(tzinfo=None))
    return at if partition is None else f"{at} (partition {partition})"
