"""Order within a key: rows by time, and searches in it for a whole batch of probes at once.

NULL comes after all times, and no search finds it. A **span** is the half-open range of positions, in one sorted run,
of the rows under the word of a probe.
"""

from __future__ import annotations

import numpy as np

from dovetail.changelog.hashing import Hashes
from dovetail.changelog.rows import Mask, Positions, expand
from dovetail.joins.state.order import EARLIEST, LATEST, Times


def by_word_and_time(words: Hashes, times: Times) -> Positions:
    """The stable order by word, then time. Streams come nearly in order of time, so few keys need a second sort."""
    order = np.argsort(words, kind="stable")
    words, times = words[order], times[order]
    same = words[1:] == words[:-1]
    descents = same & (times[1:] < times[:-1])
    if not descents.any():
        return order
    group = np.concatenate(([0], np.cumsum(~same)))
    unsorted = np.zeros(group[-1] + 1, dtype=np.bool_)
    unsorted[group[1:][descents]] = True
    members = np.flatnonzero(unsorted[group])
    order[members] = order[members[np.lexsort((times[members], group[members]))]]
    return order


def bisected(times: Times, span: tuple[Positions, Positions], bounds: Times, *, after: bool) -> Positions:
    """In each span, the first position whose time is not before its bound (``after``: whose time is after it).

    The ends of the spans are looked at first: bounds are often beyond all times of a run, or before them.
    """
    low, high = span[0].copy(), span[1].copy()

    def passed(probes: Positions, positions: Positions) -> Mask:
        return times[positions] <= bounds[probes] if after else times[positions] < bounds[probes]

    active = np.flatnonzero(low < high)
    active = active[passed(active, low[active])]
    beyond = passed(active, high[active] - 1)
    low[active[beyond]] = high[active[beyond]]
    active = active[~beyond]
    while len(active):
        middle = (low[active] + high[active]) >> 1
        after_middle = passed(active, middle)
        low[active[after_middle]] = middle[after_middle] + 1
        high[active[~after_middle]] = middle[~after_middle]
        active = active[low[active] < high[active]]
    return low


def covered(low: Positions, high: Positions) -> Positions:
    """The positions that lie in one of the spans, each once, ascending."""
    order = np.argsort(low, kind="stable")
    low, high = low[order], high[order]
    reach = np.concatenate(([0], np.maximum.accumulate(high)[:-1])) if len(high) else high
    return expand(np.maximum(low, reach), np.maximum(high, reach))[1]


def located(words: Hashes, among: Hashes) -> tuple[Positions, Positions]:
    """All pairs (i, p) with ``words[i] == among[p]``, neither sorted."""
    order = np.argsort(among, kind="stable")
    ascending = among[order]
    owners, positions = expand(np.searchsorted(ascending, words, "left"), np.searchsorted(ascending, words, "right"))
    return owners, order[positions]


class Approach:
    """The search for the nearest live rows in time, over spans of several runs: in steps away from the probe.

    A step looks at all rows of a probe, in whatever run, from its edge up to the time that lies ``reach`` rows further
    in one of the runs. Where their counts cancel out the next step begins behind them, and reaches four times as far:
    so a long stretch of retracted rows costs a number of steps that is logarithmic in its length.

    newest   the edge is the end of each span, and steps go back in time; else its beginning, and they go forward
    """

    def __init__(self, times: list[Times], spans: list[tuple[Positions, Positions]], newest: bool) -> None:
        self._times = times
        self._low = [low.copy() for low, _ in spans]
        self._high = [high.copy() for _, high in spans]
        self._newest = newest
        self._reach = 1

    def unfinished(self, probes: Positions) -> Positions:
        """Which of ``probes`` have rows left to look at."""
        remaining: Mask = np.zeros(len(probes), dtype=np.bool_)
        for low, high in zip(self._low, self._high, strict=True):
            remaining |= low[probes] < high[probes]
        return probes[remaining]

    def step(self, probes: Positions) -> list[tuple[Positions, Positions]]:
        """For each run the span that this step looks at, by probe; the next one leaves it out."""
        limits = self._limits(probes)
        steps = []
        for times, low, high in zip(self._times, self._low, self._high, strict=True):
            span = low[probes], high[probes]
            if self._newest:
                edge = bisected(times, span, limits, after=False)
                high[probes] = edge
                steps.append((edge, span[1]))
            else:
                edge = bisected(times, span, limits, after=True)
                low[probes] = edge
                steps.append((span[0], edge))
        self._reach *= 4
        return steps

    def _limits(self, probes: Positions) -> Times:
        """The time up to which a step goes: the nearest one of those ``reach`` rows away, over the runs."""
        limits = np.full(len(probes), EARLIEST if self._newest else LATEST)
        nearer = np.maximum if self._newest else np.minimum
        for times, low, high in zip(self._times, self._low, self._high, strict=True):
            first, last = low[probes], high[probes]
            remaining = np.flatnonzero(first < last)
            if self._newest:
                there = np.maximum(last[remaining] - self._reach, first[remaining])
            else:
                there = np.minimum(first[remaining] + self._reach, last[remaining]) - 1
            limits[remaining] = nearer(limits[remaining], times[there])
        return limits
