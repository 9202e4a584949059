"""Which of the rows of equal times is taken."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.rows import Positions, numpy_column
from dovetail.changelog.schema import ARRIVAL
from dovetail.joins.state.arrangement import Matches

TieBreak = Callable[[Matches], Matches]
"""Of the rows that each probe found, one for each probe."""


def last_arrived(found: Matches) -> Matches:
    return found if _single(found) else _first(found, np.lexsort((-numpy_column(found.rows, ARRIVAL), found.probe)))


def least(columns: Sequence[str]) -> TieBreak:
    """The row that is the least in ``columns``, one after the other; NULL is greater than all."""

    def chosen(found: Matches) -> Matches:
        if _single(found):
            return found
        rows = found.rows.select(list(columns)).append_column("__probe", pa.array(found.probe))
        order = pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in ("__probe", *columns)])
        return _first(found, order.to_numpy().astype(np.int64))

    return chosen


def _single(found: Matches) -> bool:
    return len(found.probe) == 0 or int(np.bincount(found.probe).max()) == 1


def _first(found: Matches, order: Positions) -> Matches:
    """The first row of each probe, ``order`` keeping those of one probe together."""
    probe = found.probe[order]
    first = order[np.concatenate(([True], probe[1:] != probe[:-1]))]
    return Matches(found.probe[first], found.rows.take(pa.array(first)))
