"""Searching in one sorted run, for all probes of a batch at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.changelog.hashing import Hashes
from dovetail.changelog.rows import Mask, Positions, expand
from dovetail.joins.state.store import SORT, Run

LOW = np.uint64((1 << 24) - 1)
HIGH = ~LOW


class Probes:
    """Words to be searched for. Searching in their order is several times faster than at random: it stays in the cache.

    exact   a whole word is searched for, not only its upper bits
    """

    def __init__(self, words: Hashes, exact: bool = False) -> None:
        self.order: Positions = np.argsort(words)
        self._low = words[self.order]
        self._high = self._low if exact else self._low | LOW

    def span(self, run: Run) -> tuple[Positions, Positions]:
        """For each probe, the half-open range of its rows in ``run``."""
        low, high = np.empty_like(self.order), np.empty_like(self.order)
        low[self.order], high[self.order] = self.span_in_order(run)
        return low, high

    def span_in_order(self, run: Run) -> tuple[Positions, Positions]:
        """The same, the probes in ``order``."""
        return np.searchsorted(run.sort, self._low, "left"), np.searchsorted(run.sort, self._high, "right")


@dataclass(frozen=True)
class Spans:
    """Half-open ranges of positions in a run, each found by a probe (its position among the probing rows)."""

    probe: Positions
    low: Positions
    high: Positions

    def only(self, mask: Mask) -> Spans:
        return self if mask.all() else Spans(self.probe[mask], self.low[mask], self.high[mask])

    def single(self) -> Spans:
        """A range of its own for each row."""
        span, positions = expand(self.low, self.high)
        return Spans(self.probe[span], positions, positions + 1)


def taken(run: Run, positions: Positions) -> pa.Table:
    """The rows at ``positions``, with ``delta``."""
    return run.table.drop_columns([SORT]).take(pa.array(positions))


def sums(run: Run, low: Positions, high: Positions) -> npt.NDArray[np.int64]:
    """The sum of the deltas of each range."""
    prefix = np.concatenate(([0], np.cumsum(run.deltas, dtype=np.int64)))
    counts: npt.NDArray[np.int64] = prefix[high] - prefix[low]
    return counts
