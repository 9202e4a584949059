"""Where a feed is read on after a pause, so that no change is missed."""

from __future__ import annotations

from collections.abc import Mapping

LONGEST_CATCH_UP = 250_000
"""Of more missed records than these, a worker reads none: it is sooner done when it drops the cold tier."""


def resume_offsets(
    positions: Mapping[int, int], first: Mapping[int, int], ends: Mapping[int, int]
) -> dict[int, int] | None:
    """Where each partition is read on, so that no change is missed; None: some are gone, or too many.

    ``positions``: up to where the cold tier has the feed; a partition without one was made later, and is read whole.
    """
    if not positions:
        return None
    starts = {partition: positions.get(partition, 0) for partition in ends}
    if any(not first[partition] <= start <= ends[partition] for partition, start in starts.items()):
        return None
    return starts if sum(ends.values()) - sum(starts.values()) <= LONGEST_CATCH_UP else None
