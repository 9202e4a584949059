"""The unmatched rows of one side of a join (``own``): those that match nothing on the ``other``, as changes.

An outer join pads them, ANTI gives them, SEMI what is left without them. Three ways to know them:

    UnmatchedByKey    of whole keys: without a residual condition the rows of a key are all unmatched, or none
    UnmatchedByRow    of each row for itself, derived anew for the keys that a batch touches
    UnmatchedInTime   kept as state, where the rows that matched one may have gone with the watermark

The first two hold nothing: both sides are there as a whole, so they are asked ``before`` the changes of a batch are
inserted into the arrangements and ``after``. The third cannot ask what was before: it is told of every change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.changelog.changes import Changes
from dovetail.changelog.hashing import Hashes, row_hashes
from dovetail.changelog.rows import Mask, Positions, allotted, any_null, distinct, expand, numbered
from dovetail.joins.inputs.arrangement_view import ArrangementView
from dovetail.joins.inputs.range_side import RangeSide
from dovetail.joins.state.arrangement import Arrangement
from dovetail.joins.state.store import RunStore

_SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")
_PAIRS = 1 << 20
"""The most pairs that are tested at once."""

Holds = Callable[[pa.Table, pa.Table], Mask]
"""Whether the residual condition holds, row by row, of own rows and other rows."""


def mirrored(holds: Holds | None) -> Holds | None:
    """The same condition, of other rows and own rows."""
    return None if holds is None else lambda own, other: holds(other, own)


class Unmatched(Protocol):
    """Of a batch. ``before`` and ``after`` its changes are inserted into the arrangements of both sides."""

    def before(self, own_changes: Changes, other_changes: Changes) -> None: ...

    def after(self) -> Changes:
        """The change of the unmatched rows of ``own``."""
        ...


@dataclass
class UnmatchedByKey:
    """Without a residual condition the rows of a key are all unmatched, or none: as the other side holds rows.

    With n the number of other rows of a key: where n goes from 0 up, the own rows (as after the batch) are taken back;
    where it goes to 0, they are given; and the new own rows of keys with n = 0 before the batch are given. For a key
    that goes from 0 up that takes back new rows and gives them again: no change, as it should be.
    """

    own: ArrangementView
    other: ArrangementView
    _fresh: Changes = field(init=False)
    _touched: pa.Table = field(init=False)
    _counts: npt.NDArray[np.int64] = field(init=False)

    def before(self, own_changes: Changes, other_changes: Changes) -> None:
        unmatched = self.other.counts(own_changes.table, self.own.keys) == 0
        self._fresh = own_changes.where(unmatched)
        self._touched = distinct(other_changes.table.select(self.other.keys))
        self._counts = self.other.counts(self._touched)

    def after(self) -> Changes:
        counts = self.other.counts(self._touched)
        flipped = np.flatnonzero((self._counts == 0) != (counts == 0))
        found = self.own.probe(self._touched.take(pa.array(flipped)), self.other.keys)
        sign = np.where(counts[flipped] == 0, 1, -1)
        moved = Changes.with_deltas(found.changes.rows, found.deltas * sign[found.probe])
        return Changes.concat([self._fresh, moved])


@dataclass
class UnmatchedByRow:
    """With a residual condition each row for itself: the unmatched rows of the touched keys, after less before.

    Of the rows held only those can change that match one of the other side's changes. Whether such a row has a match is
    known at the first one: others are tested in blocks, each four times the one before.
    """

    own: ArrangementView
    other: ArrangementView
    holds: Holds
    _touched: pa.Table = field(init=False)
    _unkeyed: Changes = field(init=False)
    _own_hashes: Hashes = field(init=False)
    _others: pa.Table = field(init=False)
    _unmatched: Changes = field(init=False)

    def before(self, own_changes: Changes, other_changes: Changes) -> None:
        unkeyed = any_null(own_changes.table, self.own.strict())
        self._unkeyed = own_changes.where(unkeyed)
        others = other_changes.table.select(self.other.keys).rename_columns(self.own.keys)
        touched = pa.concat_tables([own_changes.table.select(self.own.keys), others.cast(_keys(self.own))])
        self._touched = distinct(touched.combine_chunks())
        self._own_hashes = row_hashes(own_changes.table, self.own.schema.names)
        self._others = other_changes.table
        self._unmatched = self._derive()

    def after(self) -> Changes:
        return Changes.concat([self._unkeyed, self._derive(), self._unmatched.negated()]).consolidated()

    def _derive(self) -> Changes:
        """The unmatched among the rows that may change: the same ones before and after."""
        own = self.own.probe(self._touched).changes.consolidated()
        changed = np.isin(row_hashes(own.table, self.own.schema.names), self._own_hashes)
        own = own.where(changed | self._matched(own.table, self._others))
        other = self.other.probe(self._touched, self.own.keys).changes.consolidated()
        return own.where(~self._matched(own.table, other.table))

    def _matched(self, own: pa.Table, other: pa.Table) -> Mask:
        """Which of the rows ``own`` match one of ``other``."""
        ours = own.select(self.own.keys)
        theirs = other.select(self.other.keys).rename_columns(self.own.keys).cast(ours.schema)
        groups, _ = numbered(pa.concat_tables([ours, theirs]).combine_chunks())
        # In an order that has nothing to do with the condition: of a range the matches lie at one end.
        order = np.lexsort((row_hashes(other, other.column_names), groups[own.num_rows :]))
        low, high = (np.searchsorted(groups[own.num_rows :][order], groups[: own.num_rows], side) for side in _SIDES)
        matched = np.zeros(own.num_rows, dtype=np.bool_)
        active = np.flatnonzero((low < high) & ~any_null(own, self.own.strict()))
        tested, block = 0, 1
        while len(active):
            block = max(1, min(block, _PAIRS // len(active)))
            first = low[active] + tested
            owner, place = expand(first, np.minimum(first + block, high[active]))
            pairs = own.take(pa.array(active[owner])), other.take(pa.array(order[place]))
            matched[active[owner[self.holds(*pairs)]]] = True
            tested, block = tested + block, block * 4
            active = active[~matched[active] & (low[active] + tested < high[active])]
        return matched


class UnmatchedInTime:
    """The unmatched rows of a side of a range join, each as often as it is there.

    A row is **open** from the time it comes without a match, or loses its last one, until it finds one. So what an open
    row has emitted is known, even where the rows it once matched have gone with the watermark. If matches can be taken
    back, the rows that matched such a one are kept too, as **settled**: what has gone is taken back no more, so they
    are never open again.

        other   r (t=95) ──────────────────────── watermark 106: r goes ──── r2 (t=108) ──
        own          l (t=100): matches r, not open ··· settled ············ matches r2: nothing to take back

    ``came`` and ``met`` are told of each change, once it is in the arrangement of its side; they give the change of the
    open rows.

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
        open_rows = self._open.equal(retracted.rows)
        taken = allotted(open_rows.probe, open_rows.deltas, -retracted.deltas)
        return self._moved(Changes.concat([opened, Changes.with_deltas(open_rows.changes.rows, -taken)]))

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
        matches = np.zeros(len(own))
        for found in self._other.rows.found_in_blocks(own.table, *window, keys):
            counted = np.where(self._holds(own.take(found.probe).table, found.rows), found.deltas, 0)
            matches += np.bincount(found.probe, counted, minlength=len(own))
        return matches > 0

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


def unmatched(own: ArrangementView, other: ArrangementView, holds: Holds | None) -> Unmatched:
    """Of two sides that are held as a whole; ``holds``: the residual condition, if there is one."""
    return UnmatchedByKey(own, other) if holds is None else UnmatchedByRow(own, other, holds)


def _keys(held: ArrangementView) -> pa.Schema:
    return pa.schema([held.schema.field(name) for name in held.keys])


def _rows_of(side: RangeSide, store: RunStore, name: str) -> Arrangement:
    schema = side.rows.schema
    return Arrangement(store, name, schema, side.rows.keys, schema.names, side.rows.null_safe, order=side.time)
