"""Which letters of a topic were put back, and when: what its marks say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from dovetail.changelog.dead_letter import replayed_offsets
from dovetail.changelog.schema import EVENT_TIME_TYPE

_NEVER = -1


@dataclass
class Replayed:
    """Gathers the marks of a topic, in any order; a letter has one at most."""

    _ranges: dict[int, list[tuple[int, int, int]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, records: pa.Table) -> None:
        """Some records of the topic, HEADED, with marks among them or not."""
        for partition, at_ms, ranges in replayed_offsets(records):
            self._ranges[partition] += [(first, last, at_ms) for first, last in ranges]

    def times(self, dead_letters: pa.Table) -> pa.Array:
        """When each of ``dead_letters`` (``partition``, ``offset``) was put back; NULL where it was not."""
        partitions, offsets = (dead_letters.column(name).to_numpy() for name in ("partition", "offset"))
        at_ms = np.full(len(offsets), _NEVER, dtype=np.int64)
        for partition, ranges in self._ranges.items():
            here = np.flatnonzero(partitions == partition)
            at_ms[here] = _at(offsets[here], ranges)
        return pa.array(at_ms, mask=at_ms == _NEVER).cast(EVENT_TIME_TYPE)


def _at(offsets: np.ndarray, ranges: Iterable[tuple[int, int, int]]) -> np.ndarray:
    firsts, lasts, at_ms = np.array(sorted(ranges), dtype=np.int64).T
    place = np.searchsorted(firsts, offsets, side="right") - 1
    inside = (place >= 0) & (offsets <= lasts[place])
    return np.where(inside, at_ms[place], _NEVER)
