"""The nearest in time: of rows in groups, for a whole batch of probes at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dovetail.changelog.rows import Mask, Positions, expand
from dovetail.joins.state.order import Times
from dovetail.joins.state.time_search import bisected, by_word_and_time

LOOKS_BACK = {">=": True, ">": True, "<=": False, "<": False}
INCLUSIVE = {">=": True, ">": False, "<=": True, "<": False}
_PAIRS = 1 << 22
"""The most pairs that are tested at once."""


@dataclass(frozen=True)
class Nearest:
    """Rows sorted by group, then time; for each probe its candidates, nearest first.

    rows    the positions of the rows, sorted; of equal times the one to prefer comes nearest
    first   for each probe the place in ``rows`` of its nearest candidate
    counts  how many candidates it has; the others follow in the direction of ``step``
    """

    rows: Positions
    first: Positions
    counts: npt.NDArray[np.int64]
    step: int

    @staticmethod
    def of(
        groups: Positions,
        times: Times,
        preference: npt.NDArray[np.int64],
        probes: tuple[Positions, Times],
        comparison: str,
    ) -> Nearest:
        """``probes``: group and time of each; ``comparison``: probe first. The greatest ``preference`` is
        the nearest of equal times.
        """
        back = LOOKS_BACK[comparison]
        by_preference = np.argsort(preference if back else -preference, kind="stable")
        order = by_preference[by_word_and_time(groups[by_preference].astype(np.uint64), times[by_preference])]
        of_group, at = probes
        low, high = (np.searchsorted(groups[order], of_group, side) for side in ("left", "right"))
        edge = bisected(
            times[order], (low, high), at, after=INCLUSIVE[comparison] if back else not INCLUSIVE[comparison]
        )
        return Nearest(order, edge - 1, edge - low, -1) if back else Nearest(order, edge, high - edge, 1)

    def chosen(self, holds: Callable[[Positions, Positions], Mask] | None) -> Positions:
        """For each probe the position of the nearest row that ``holds(probes, rows)``, or -1.

        Candidates are tested in blocks, each four times the one before: most probes need the first alone.
        """
        chosen = np.full(len(self.first), -1, dtype=np.int64)
        active = np.flatnonzero(self.counts)
        if holds is None:
            chosen[active] = self.rows[self.first[active]]
            return chosen
        tested, block = 0, 1
        while len(active):
            block = max(1, min(block, _PAIRS // len(active)))
            upper = np.minimum(self.counts[active], tested + block)
            owner, nth = expand(np.full(len(active), tested), upper)
            candidates = self.rows[self.first[active[owner]] + self.step * nth]
            matching = np.flatnonzero(holds(active[owner], candidates))
            found, nearest = np.unique(owner[matching], return_index=True)
            chosen[active[found]] = candidates[matching[nearest]]
            tested, block = tested + block, block * 4
            unanswered = np.delete(active, found)
            active = unanswered[self.counts[unanswered] > tested]
        return chosen
