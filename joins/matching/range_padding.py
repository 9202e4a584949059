"""The rows of one side of a range join (``own``) that match nothing on the ``other``.

They are kept, each as often as it is there: a row is **open** from the time it comes without a match, or loses its
last one, until it finds one. So what an open row has emitted is known, even where the rows it once matched have gone
with the watermark. If matches can be taken back, the rows that matched such a one are kept too, as **settled**: what
has gone is taken back no more, so they are never open again.

    other   r (t=95) ──────────────────────── watermark 106: r goes ──── r2 (t=108) ──
    own          l (t=100): matches r, not open ··· settled ············ matches r2: nothing to take back
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from changelog.changes import Changes
from changelog.rows import Mask, Positions, allotted
from joins.inputs.range_side import RangeSide
from joins.state.arrangement import Arrangement
from joins.state.store import RunStore

Holds = Callable[[pa.Table, pa.Table], Mask]
"""Whether the residual condition holds, row by row, of own rows and other rows."""


class Unmatched:
    """``came`` and ``met`` are told of each change, once it is in the arrangement of its side; they give the change of
    the open rows.

    holds   None: there is no residual condition
    """

    def __init__(self, own: RangeSide, other: RangeSide, holds: Holds | None, store: RunStore, name: str) -> None:
        self._own, self._other, self._holds = own, other, holds
        self._open = _rows_of(own, store, f"{name}.open")
        self._settled = None if other.only_grows else _rows_of(own, store, f"{name}.settled")

    def came(self, changes: Changes, matched: Mask) -> Changes:
        """``changes`` of own rows; ``matched``: which of them match a row of the other side."""
        opened = changes.where(~matched).insertions
        if changes.only_insertions:
            return self._moved(opened)
        retracted = changes.retractions
        held = self._open.equal(retracted.rows)
        taken = allotted(held.probe, held.deltas, -retracted.deltas)
        return self._moved(Changes.concat([opened, Changes.with_deltas(held.changes.rows, -taken)]))

    def met(self, changes: Changes) -> Changes:
        """``changes`` of other rows: insertions close the open rows that match, retractions may open rows again."""
        closed = self._found(self._open, changes.insertions).negated()
        if changes.only_insertions:
            return self._moved(closed)
        touched = self._found(self._own.rows, changes.retractions)
        opened = touched.where(~self.matched(touched) & ~self._is_settled(touched))
        return self._moved(Changes.concat([closed, opened]))

    def matched(self, own: Changes) -> Mask:
        """Which of some own rows match a row that the other side holds."""
        window, keys = self._own.window(own), self._own.rows.keys
        if self._holds is None:
            return self._other.rows.counts_between(own.table, *window, keys) > 0
        found = self._other.rows.between(own.table, *window, keys)
        counted = np.where(self._holds(own.take(found.probe).table, found.rows), found.deltas, 0)
        return np.bincount(found.probe, counted, minlength=len(own)) > 0

    def settle(self, gone: Changes) -> None:
        """Other rows have gone with the watermark: what matches them has had its match."""
        if self._settled is not None and len(gone):
            found = self._found(self._own.rows, gone)
            self._settled.insert(found.where(~self._is_settled(found)))

    def drop(self, bound: int | None) -> Changes:
        """Own rows before ``bound`` have gone, if there is one; those of them that were open."""
        if bound is None:
            return Changes.empty(self._own.rows.schema)
        if self._settled is not None:
            self._settled.expire(bound)
        return self._open.expire(bound)

    def _moved(self, changes: Changes) -> Changes:
        self._open.insert(changes)
        return changes

    def _is_settled(self, own: Changes) -> Mask:
        settled = np.zeros(len(own), dtype=np.bool_)
        if self._settled is not None:
            settled[self._settled.equal(own.rows).probe] = True
        return settled

    def _found(self, among: Arrangement, others: Changes) -> Changes:
        """The rows of ``among`` that match one of ``others``, each once."""
        window, keys, holds = self._other.window(others), self._other.rows.keys, self._holds
        if holds is None:
            return among.found_between(others.table, *window, keys)

        def pairs_hold(probe: Positions, own: pa.Table) -> Mask:
            return holds(own, others.take(probe).table)

        return among.found_between(others.table, *window, keys, pairs_hold)


def _rows_of(side: RangeSide, store: RunStore, name: str) -> Arrangement:
    schema = side.rows.schema
    return Arrangement(store, name, schema, side.rows.keys, schema.names, side.rows.null_safe, order=side.time)
