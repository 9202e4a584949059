"""What a batch of probes finds, cut into blocks: so much is taken out of the runs, and tested, at once.

A key that a tenth of all rows have gives a tenth of a batch of its probes more pairs than memory has room for, though
the condition may let few of them through. Where they end in a run is known before any is taken:

    probe       a: 2 rows   b: 3,000,000 rows                      c: 5 rows
    blocks      |-- a --|   |-- b --|-- b --|-- b --|              |-- c --|
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dovetail.changelog.rows import Positions, expand
from dovetail.joins.state.run_search import Spans
from dovetail.joins.state.store import Run

PAIRS = 1 << 20
"""The most pairs of a block."""


@dataclass(frozen=True)
class RunSpans:
    """What some probes find in a run; a probe may be missing, or be there several times."""

    run: Run
    spans: Spans

    @property
    def pairs(self) -> Positions:
        """By span."""
        return self.spans.high - self.spans.low


def blocks(found: Sequence[RunSpans]) -> Iterator[list[RunSpans]]:
    """``found`` in blocks of at most PAIRS pairs; at least one block. What a probe finds may lie in several of them."""
    block: list[RunSpans] = []
    free = PAIRS
    for one in found:
        through = np.cumsum(one.pairs)
        done, total = 0, int(through[-1]) if len(through) else 0
        while done < total:
            if free == 0:
                yield block
                block, free = [], PAIRS
            taken = min(total - done, free)
            block.append(RunSpans(one.run, _between(one.spans, through, done, done + taken)))
            done, free = done + taken, free - taken
    yield block


def blocks_of_probes(found: Sequence[RunSpans], probes: int) -> Iterator[list[RunSpans]]:
    """As ``blocks``, with all that a probe finds in one of them: so a block may hold more, of a single probe."""
    pairs = np.zeros(probes, dtype=np.int64)
    for one in found:
        np.add.at(pairs, one.spans.probe, one.pairs)
    through = np.cumsum(pairs)
    first = 0
    while first < probes or first == 0:
        done = int(through[first - 1]) if first else 0
        after = max(first + 1, int(np.searchsorted(through, done + PAIRS, "right")))
        if first == 0 and after >= probes:
            yield list(found)
        else:
            yield [RunSpans(one.run, _of_probes(one.spans, first, after)) for one in found]
        first = after


def expanded(low: Positions, high: Positions) -> Iterator[tuple[Positions, Positions]]:
    """As ``changelog.rows.expand``, in blocks of at most PAIRS pairs; none where there is no pair."""
    through = np.cumsum(high - low)
    total = int(through[-1]) if len(through) else 0
    ranges = Spans(np.arange(len(low)), low, high)
    for done in range(0, total, PAIRS):
        block = _between(ranges, through, done, min(done + PAIRS, total))
        owners, positions = expand(block.low, block.high)
        yield block.probe[owners], positions


def _between(spans: Spans, through: Positions, start: int, end: int) -> Spans:
    """The spans with the pairs from number ``start`` to ``end``; the first and the last of them in part."""
    if start == 0 and end == through[-1]:
        return spans
    first, last = int(np.searchsorted(through, start, "right")), int(np.searchsorted(through, end, "left"))
    low, high = spans.low[first : last + 1].copy(), spans.high[first : last + 1].copy()
    high[-1] -= through[last] - end
    low[0] += start - (through[first - 1] if first else 0)
    return Spans(spans.probe[first : last + 1], low, high)


def _of_probes(spans: Spans, first: int, after: int) -> Spans:
    return spans.only((spans.probe >= first) & (spans.probe < after))
