"""The event-time temporal join: each left row with the right row that was valid at its time.

**Definition.** The rows of the right side are versions. A version holds from its time to that of the next one under the
same join key; of equal times the last arrived holds. One that is marked as ``deleted`` ends the one before it. A left
row is joined with the version that holds at its time, if there is one and the residual condition is true of both: no
older version is tried. LEFT pads a left row without a version, INNER lets it go; NULL keys and times match nothing.

**Waiting.** A left row is answered once, when the watermarks of both sides have passed it: every version that begins at
its time or before has come then. A retraction before that takes it out, one after that takes its answer back::

    left       a│0:42 ─────────waits────────▶ answered: v2
    versions   v1│0:41     v2│0:42     v3│0:45
    watermarks          0:41               0:43

**State.** Left rows that wait; of the versions those from the lesser watermark on, and of each key the newest before
it. Of a left side that can take rows back besides what was answered, for as long as its rows stand.

Source: the event-time temporal join of Flink.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from dovetail.changelog.changes import Changes
from dovetail.changelog.rows import Mask, allotted, any_null
from dovetail.joins.dataflow.ports import Ingest, JoinKind, Pad, Predicate
from dovetail.joins.dataflow.specification import JoinSpec
from dovetail.joins.inputs.timed import TimedNormalizer
from dovetail.joins.matching.row_assembler import RowAssembler
from dovetail.joins.matching.tie_breaks import last_arrived
from dovetail.joins.matching.timeline import Versions
from dovetail.joins.matching.waiting_rows import WaitingRows
from dovetail.joins.state.arrangement import Arrangement
from dovetail.joins.state.order import bound_of
from dovetail.joins.state.store import RunStore


@dataclass(frozen=True)
class TemporalSpec(JoinSpec):
    """The event-time temporal join: each left row with the version of the right row that was valid at ``left_time``.

    A version holds from its ``right_time`` to that of the next one under the same join key; one whose ``deleted`` is
    true ends the one before. A left row waits until the watermarks of both sides have passed it, and is answered once;
    a retraction before that takes it out, one after that takes its answer back. The condition is tested on the version
    chosen by time.

    deleted   a column of the right port; empty: there are no deletes
    """

    kinds = (JoinKind.INNER, JoinKind.LEFT)

    left_time: str
    right_time: str
    deleted: str = ""
    null_safe: tuple[bool, ...] = ()
    condition: Predicate | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "right", replace(self.right, tie_break_by_arrival=True))

    @property
    def waits(self) -> bool:
        return True

    def open(self, store: RunStore, name: str) -> TemporalOperator:
        return TemporalOperator(self, store, name)


class TemporalOperator:
    """``on_batch([left rows, versions]) -> changes`` of the joined rows: left columns, then right columns."""

    def __init__(self, spec: TemporalSpec, store: RunStore, name: str) -> None:
        self._spec = spec
        self._left = TimedNormalizer(spec.left, spec.left_time, store, f"{name}.left", spec.null_safe)
        self._right = TimedNormalizer(spec.right, spec.right_time, store, f"{name}.right", spec.null_safe)
        self._waiting = WaitingRows(self._left.schema, spec.left.keys, spec.left_time, store, f"{name}.waiting")
        self._versions = Versions.of(self._right, f"{name}.right", store, last_arrived, spec.deleted)
        self._pairing = RowAssembler(spec.left.schema, spec.right.schema, spec.condition, spec.pad is Pad.DEFAULT)
        self._answers: Arrangement | None = None
        if spec.left.ingest is not Ingest.APPEND:
            names = spec.left.schema.names
            self._answers = Arrangement(store, f"{name}.answers", self._pairing.schema, spec.left.keys, names)

    @property
    def dangling(self) -> int:
        return self._left.dangling + self._right.dangling

    def on_batch(self, inputs: Sequence[pa.Table | None]) -> Changes:
        left = self._left.normalize(inputs[0])
        self._versions.insert(self._right.matchable(self._right.normalize(inputs[1])))
        timeless = any_null(left.table, [self._spec.left_time])
        timed = left.where(~timeless)
        late = (self._left.times(timed) < self._waiting.passed) & (timed.deltas < 0)
        self._waiting.hold(timed.where(~late))
        return Changes.concat([self._unmatched(left.where(timeless)), self._taken_back(timed.where(late))])

    def on_watermark(self, watermarks: Sequence[int | None]) -> Changes:
        left, right = watermarks
        if left is None or right is None:
            return Changes.empty(self._pairing.schema)
        ready = self._waiting.released(min(left, right))
        answered = self._answered(ready) if len(ready) else Changes.empty(self._pairing.schema)
        self._versions.forget(bound_of(min(left, right), self._right.schema.field(self._spec.right_time).type))
        if self._answers is not None:
            self._answers.insert(answered)
        return answered

    def _answered(self, left: Changes) -> Changes:
        """The answers to left rows that all versions are there for."""
        at = self._left.times(left)
        found = self._versions.nearest(left.table, at, newest=True, inclusive=True, keys=self._spec.left.keys)
        found = found.where(self._holds(left.take(found.probe).table, found.rows))
        joined = RowAssembler(self._pairing.left, self._pairing.right).of_left(left, found)
        return Changes.concat([joined, self._unmatched(left.where(found.unmatched(len(left))))])

    def _holds(self, left: pa.Table, versions: pa.Table) -> Mask:
        """Which left rows are joined with the version at their side."""
        holds = self._pairing.matching(left, versions)
        if self._spec.deleted:
            holds &= ~pc.fill_null(versions.column(self._spec.deleted), False).to_numpy()
        return holds

    def _unmatched(self, left: Changes) -> Changes:
        if self._spec.kind is JoinKind.INNER:
            return Changes.empty(self._pairing.schema)
        return self._pairing.left_padded(left)

    def _taken_back(self, retracted: Changes) -> Changes:
        """The retractions of what was answered to the left rows that are ``retracted``."""
        if self._answers is None or len(retracted) == 0:
            return Changes.empty(self._pairing.schema)
        retracted = retracted.consolidated()
        found = self._answers.equal(retracted.table)
        counts = allotted(found.probe, found.deltas, -retracted.deltas)
        changes = Changes.with_deltas(found.changes.rows, -counts).consolidated()
        self._answers.insert(changes)
        return changes
