"""The symmetric join of rows near in time, whose state goes with the watermarks.

**Definition.** Left and right rows match when their keys are equal, ``lower <= left - right <= upper`` holds of their
times (either bound may be missing), and the residual condition holds; a NULL time matches nothing. INNER gives every
matching pair; LEFT also each left row that matches nothing, with the right columns padded; RIGHT is its mirror; FULL
both; SEMI the left rows that match something, ANTI those that match nothing, both the left columns alone. The output is
the difference that each batch makes, unless rows are to leave once, in one of two forms:

    append   a padded row leaves when nothing can match it any more; pairs at once
    closed   every row leaves when the later of its times is behind the least watermark, and padded rows besides not
             before nothing can match them any more

**State.** A row goes when nothing that is yet to come can match it. With the band [-10 s, 10 s] and the watermark of
the other side at 60, what is before 50 goes:

    left    ├──── gone ────┤·······kept·······▶
            ───────────────50────────60────────
    right                            ▲ watermark

A row that may be taken back stays besides until the watermark of its own side has passed it.

What goes is no retraction: its output stays. A retraction of a row that has gone is dangling, and left out; so is a
late row, by whoever hands the batch over. A row that comes so late that it would go at once meets what is held first.

**Method.** The pairs are bilinear, as in ``joins.operators.bidirectional``: the right changes meet the left rows held,
then the left changes the right rows of after the batch. Rows are found by a binary search for the key, and one in time
within.

Source: the interval joins of Flink and RisingWave, ``date_diff_within`` of Timeplus.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dovetail.changelog.changes import Changes
from dovetail.changelog.rows import Mask
from dovetail.joins.dataflow.ports import JoinKind, Pad, Predicate
from dovetail.joins.dataflow.specification import JoinSpec
from dovetail.joins.inputs.change_normalizer import ChangeNormalizer
from dovetail.joins.inputs.range_side import RangeSide
from dovetail.joins.matching.pending_output import PendingOutput
from dovetail.joins.matching.row_assembler import RowAssembler
from dovetail.joins.matching.unmatched import UnmatchedInTime, mirrored
from dovetail.joins.state.arrangement import Matches
from dovetail.joins.state.order import Times, times_of
from dovetail.joins.state.partitioned_by import PartitionedBy
from dovetail.joins.state.store import RunStore

_LEFT_ONLY = (JoinKind.SEMI, JoinKind.ANTI)
_OF_LEFT = (JoinKind.LEFT, JoinKind.FULL, *_LEFT_ONLY)
_OF_RIGHT = (JoinKind.RIGHT, JoinKind.FULL)


@dataclass(frozen=True)
class Band:
    """``lower <= left - right <= upper`` over a time column of each side; both inclusive, None: no bound.

    The bounds are in the unit of the columns, which have one type: a timestamp or an integer.

    left_shift    rows of the left port that are yet to come have ``left >= watermark + left_shift`` (ms, or the number
                  itself); None: their column does not follow the event time
    """

    left: str
    right: str
    lower: int | None
    upper: int | None
    left_shift: int | None = 0
    right_shift: int | None = 0


@dataclass(frozen=True)
class RangeSpec(JoinSpec):
    """The symmetric join of rows near in time: as ``BidirectionalSpec`` with a band; its state goes with the watermark.

    A left row goes when ``left - lower`` is behind the right watermark: nothing yet to come can match it. So a right
    row when ``right + upper`` is behind the left one. One that may be taken back goes besides not before the watermark
    of its own port, if it has one, has passed it. What goes this way is no retraction: the output stays.

    append   padded rows leave once, when their row goes; else at once, and are taken back by the first match. For
             inputs without retractions only
    closed   every row leaves once, when the later of its times is behind the least watermark of the inputs (EMIT ON
             WINDOW CLOSE); what was taken back until then never leaves
    """

    kinds = tuple(kind for kind in JoinKind if kind is not JoinKind.MARK)

    band: Band
    null_safe: tuple[bool, ...] = ()
    condition: Predicate | None = None
    append: bool = False
    closed: bool = False

    @property
    def waits(self) -> bool:
        return self.closed or (self.append and self.kind is not JoinKind.INNER)

    def open(self, store: RunStore, name: str) -> RangeOperator:
        return RangeOperator(self, store, name)


@dataclass(frozen=True)
class _Half:
    """One side at work.

    unmatched   None: rows of this side that match nothing are not asked for
    joined      its changes with what they found, in the columns of the output; the residual condition untested
    alone       its changes without a match, in the columns of the output
    """

    side: RangeSide
    unmatched: UnmatchedInTime | None
    joined: Callable[[Changes, Matches], Changes]
    alone: Callable[[Changes], Changes]


class RangeOperator:
    """``on_batch([left rows, right rows]) -> changes``, ``on_watermark([left, right]) -> changes``.

    They are of left columns, then right columns; of SEMI and ANTI left columns alone.
    """

    def __init__(self, spec: RangeSpec, store: RunStore, name: str) -> None:
        self._spec = spec
        pairing = RowAssembler(spec.left.schema, spec.right.schema, None, spec.pad is Pad.DEFAULT)
        left, right = _sides(spec, store, name)
        holds = RowAssembler(spec.left.schema, spec.right.schema, spec.condition).matching if spec.condition else None
        of_left = UnmatchedInTime(left, right, holds, store, f"{name}.left") if spec.kind in _OF_LEFT else None
        of_right = (
            UnmatchedInTime(right, left, mirrored(holds), store, f"{name}.right") if spec.kind in _OF_RIGHT else None
        )
        left_only = spec.kind in _LEFT_ONLY
        self._left = _Half(left, of_left, pairing.of_left, _as_it_is if left_only else pairing.left_padded)
        self._right = _Half(right, of_right, pairing.of_right, pairing.right_padded)
        self._schema: pa.Schema = spec.left.schema if left_only else pairing.schema
        partitioned_by = PartitionedBy(spec.left.keys, () if left_only else spec.right.keys, spec.pad is Pad.DEFAULT)
        self._pending = PendingOutput(store, f"{name}.pending", self._schema, partitioned_by) if spec.closed else None
        self._waits = spec.append and not spec.closed and spec.kind is not JoinKind.SEMI
        """Whether rows without a match leave when they go, and not at once."""

    @property
    def dangling(self) -> int:
        return self._left.side.dangling + self._right.side.dangling

    def on_batch(self, inputs: Sequence[pa.Table | None]) -> Changes:
        left_rows, right_rows = inputs
        return Changes.concat(
            [
                Changes.empty(self._schema),
                *self._normalize(self._right, self._left, right_rows),
                *self._normalize(self._left, self._right, left_rows),
            ]
        )

    def _normalize(self, own: _Half, other: _Half, rows: pa.Table | None) -> list[Changes]:
        """What the rows of one side change in the output, and in the state."""
        changes = own.side.normalize(rows)
        if len(changes) == 0:
            return []
        joined, matched = self._met(own, other, changes)
        own.side.store(changes)
        parts = [joined]
        if own.unmatched is not None:
            parts.append(self._left_alone(own, changes, own.unmatched, matched))
        if other.unmatched is not None:
            moved = other.unmatched.met(changes)
            parts.append(self._moved(other, moved))
        return parts

    def _met(self, own: _Half, other: _Half, changes: Changes) -> tuple[Changes, Mask]:
        """The pairs that ``changes`` make with the rows of the other side, and which of them make any."""
        if self._spec.kind in _LEFT_ONLY:
            none = np.zeros(len(changes), dtype=np.bool_)
            return Changes.empty(self._schema), none if own.unmatched is None else own.unmatched.matched(changes)
        parts, matches = [], np.zeros(len(changes))
        for found in other.side.rows.found_in_blocks(changes.table, *own.side.window(changes), own.side.rows.keys):
            pairs, probe, counts = own.joined(changes, found), found.probe, found.deltas
            if self._spec.condition is not None and len(pairs):
                holds = self._spec.condition(pairs.rows)
                pairs, probe, counts = pairs.where(holds), probe[holds], counts[holds]
            parts.append(pairs)
            if own.unmatched is not None:
                matches += np.bincount(probe, counts, minlength=len(changes))
        joined = Changes.concat(parts)
        return self._leave(joined, lambda: self._later(joined)), matches > 0

    def _left_alone(self, own: _Half, changes: Changes, unmatched: UnmatchedInTime, matched: Mask) -> Changes:
        """What own ``changes`` change in the rows without a match; what can match nothing is one as it comes."""
        lone = own.side.timeless(changes) if self._waits else ~own.side.matchable(changes)
        at_once = changes.where(lone)
        moved = unmatched.came(changes.where(~lone), matched[~lone])
        if self._spec.kind is JoinKind.SEMI:
            met = Changes.concat([changes, at_once.negated(), moved.negated()]).consolidated()
            return self._leave(met, lambda: own.side.last_match(met))
        if self._waits:
            return own.alone(at_once)
        alone = Changes.concat([at_once, moved])
        return self._leave(own.alone(alone), lambda: own.side.last_match(alone))

    def _moved(self, own: _Half, moved: Changes) -> Changes:
        """What leaves when rows that were there find a match, or lose their last one."""
        if self._waits:
            return Changes.empty(self._schema)
        if self._spec.kind is JoinKind.SEMI:
            moved = moved.negated()
        return self._leave(own.alone(moved), lambda: own.side.last_match(moved))

    def _leave(self, changes: Changes, due: Callable[[], Times]) -> Changes:
        """``changes``, if they leave now."""
        if self._pending is None:
            return changes
        self._pending.hold(changes, due())
        return Changes.empty(self._schema)

    def _later(self, pairs: Changes) -> Times:
        left, right = (times_of(pairs.table.column(half.side.time)) for half in (self._left, self._right))
        later: Times = np.maximum(left, right)
        return later

    def on_watermark(self, watermarks: Sequence[int | None]) -> Changes:
        left, right = self._left, self._right
        at_left, at_right = (half.side.reached(at) for half, at in zip((left, right), watermarks, strict=True))
        parts = [Changes.empty(self._schema)]
        left_bound, right_bound = left.side.bound(at_left, at_right), right.side.bound(at_right, at_left)
        gone_left, gone_right = left.side.drop(left_bound), right.side.drop(right_bound)
        for own, bound, gone in ((left, left_bound, gone_right), (right, right_bound, gone_left)):
            if own.unmatched is not None:
                opened = own.unmatched.drop(bound)
                own.unmatched.settle(gone)
                if self._waits:
                    parts.append(own.alone(opened))
        if self._pending is not None and at_left is not None and at_right is not None:
            parts.append(self._pending.released(min(at_left, at_right)))
        return Changes.concat(parts)


def _sides(spec: RangeSpec, store: RunStore, name: str) -> tuple[RangeSide, RangeSide]:
    """Left and right, each looking at the other's band."""
    band, null_safe = spec.band, spec.null_safe or (False,) * len(spec.left.keys)
    upward = None if band.lower is None else -band.lower
    left = ChangeNormalizer.of(spec.left, store, f"{name}.left", null_safe, order=band.left)
    right = ChangeNormalizer.of(spec.right, store, f"{name}.right", null_safe, order=band.right)
    return (
        RangeSide(left, band.left, band.upper, upward, band.left_shift),
        RangeSide(right, band.right, upward, band.upper, band.right_shift),
    )


def _as_it_is(changes: Changes) -> Changes:
    return changes
