"""How the rows of a sorted run are spread over its join keys: a few numbers, taken when the run is made.

Rows of one key lie together in a run, so where keys begin is known once it is sorted, and what is kept of that costs a
small part of the sorting.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dovetail.changelog.hashing import Hashes

HEAVIEST = 8
"""Of how many keys a run knows that they have the most rows in it."""


@dataclass(frozen=True)
class KeyWeights:
    """keys      how many different words of a join key the rows have
    heaviest  the words of those with the most rows, at most HEAVIEST
    """

    keys: int
    heaviest: tuple[int, ...]


def weighed(words: Hashes) -> KeyWeights:
    """Of rows in the order of ``words``, which hold the bits of the join key only."""
    if len(words) == 0:
        return KeyWeights(0, ())
    starts = np.flatnonzero(np.concatenate(([True], words[1:] != words[:-1])))
    sizes = np.diff(np.append(starts, len(words)))
    count = min(HEAVIEST, len(sizes))
    found = starts[np.argpartition(sizes, -count)[-count:]]
    return KeyWeights(len(starts), tuple(words[found].tolist()))
