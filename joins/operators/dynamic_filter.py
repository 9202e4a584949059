"""The join with one row that changes: a filter whose bound moves, and the value that all rows are joined with.

**Definition.** The right side holds one row, or none. INNER gives each left row with it, where the condition holds
(NULL counts as false); LEFT besides each left row for which there is no such row, padded; SEMI, the dynamic filter, the
left rows alone of which INNER gives the pairs. The output is the difference that a batch makes.

**Method.** When the right row changes, all held left rows are looked at, the result of each before and after. Where all
that the condition asks of the right row is an inequality, SEMI looks only at those between the old bound and the new:

    held left rows, by v      1   3   4   7   9
    v > 2, then v > 5               └───┘          these leave

**State.** The left rows, in the order of the bounded column; the right row, in each bucket: its edge is broadcast. Of
a bound that rises, as a clock does, the left rows that it has not passed.

Source: the dynamic filter of RisingWave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dovetail.changelog.changes import Changes
from dovetail.changelog.errors import InternalError
from dovetail.changelog.rows import Mask
from dovetail.joins.dataflow.ports import JoinKind, Pad, Predicate
from dovetail.joins.dataflow.specification import JoinSpec
from dovetail.joins.inputs.change_normalizer import ChangeNormalizer
from dovetail.joins.matching.row_assembler import RowAssembler
from dovetail.joins.state.arrangement import Arrangement
from dovetail.joins.state.order import EARLIEST, LATEST, NEVER, times_of
from dovetail.joins.state.partitioned_by import PartitionedBy
from dovetail.joins.state.store import RunStore


@dataclass(frozen=True)
class MovingBound:
    """``left <comparison> right`` is part of the condition: columns of one type, a number or a time.

    comparison   >=, >, <= or <
    rises        the right value never falls: what becomes of the left rows behind it is settled
    """

    left: str
    comparison: str
    right: str
    rises: bool = False

    def reached(self, right: pa.Table) -> int | None:
        """The order of the value of ``right``; None where there is none."""
        bound = int(times_of(right.column(self.right))[0]) if right.num_rows else NEVER
        return None if bound == NEVER else bound

    def range_of(self, right: pa.Table) -> tuple[int, int] | None:
        """The least and the greatest order of the left rows that may hold with the row of ``right``, if any may."""
        bound = self.reached(right)
        if bound is None:
            return None
        return (bound, LATEST) if self.comparison in (">", ">=") else (EARLIEST, bound)


@dataclass(frozen=True)
class DynamicFilterSpec(JoinSpec):
    """The join with the one row of the right side, which goes to all buckets. The left port is cut by any columns.

    condition   over the columns of left and right together; None: it always holds
    bound       all of it that reads the right side, if that is an inequality: SEMI goes by it
    """

    kinds = (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI)

    condition: Predicate | None = None
    bound: MovingBound | None = None

    def open(self, store: RunStore, name: str) -> DynamicFilterOperator:
        return DynamicFilterOperator(self, store, name)


class DynamicFilterOperator:
    """``on_batch([left rows, right rows]) -> changes``: left columns, then right columns; of SEMI left columns."""

    def __init__(self, spec: DynamicFilterSpec, store: RunStore, name: str) -> None:
        self._kind = spec.kind
        self._bound = spec.bound if spec.kind is JoinKind.SEMI else None
        self._pairing = RowAssembler(spec.left.schema, spec.right.schema, spec.condition, spec.pad is Pad.DEFAULT)
        self._normalizer = ChangeNormalizer.of(spec.left, store, f"{name}.intake")
        order = self._bound.left if self._bound is not None else ""
        partitioned_by = PartitionedBy(spec.left.keys)
        self._left = Arrangement(
            store, f"{name}.left", spec.left.schema, (), order=order, partitioned_by=partitioned_by
        )
        self._right = ChangeNormalizer.of(spec.right, store, f"{name}.right")
        left = [field.with_nullable(True) for field in spec.left.schema]
        self._output = pa.schema(left) if spec.kind is JoinKind.SEMI else self._pairing.schema

    @property
    def dangling(self) -> int:
        return self._normalizer.dangling + self._right.dangling

    def on_batch(self, inputs: Sequence[pa.Table | None]) -> Changes:
        left, right = self._normalizer.normalize_and_store(inputs[0]), self._right.normalize(inputs[1])
        before = self._held_right()
        self._right.arrangement.insert(right.consolidated())
        after = self._held_right()
        parts = [Changes.empty(self._output)]
        if len(Changes.concat([Changes.of(before, -1), Changes.of(after)]).consolidated()):
            held = self._candidates(before, after)
            parts += [self._result(held.negated(), before), self._result(held, after)]
        parts.append(self._result(left, after))
        self._keep(left, after)
        return Changes.concat(parts)

    def _keep(self, left: Changes, right: pa.Table) -> None:
        """Hold the left rows whose result may come to differ: none without a value, and none behind a bound that rises.
        There rows are in for good, or out, and so is one that is taken back later.
        """
        if self._bound is None:
            self._left.insert(left)
            return
        passed = self._bound.reached(right) if self._bound.rises else None
        times = times_of(left.rows.column(self._bound.left))
        self._left.insert(left.where((times != NEVER) & (times >= (EARLIEST if passed is None else passed))))
        if passed is not None:
            self._left.expire(passed)

    def _held_right(self) -> pa.Table:
        """The right row, if there is one."""
        rows = self._right.arrangement.everything().rows
        if len(rows) > 1:
            raise InternalError(f"the right side of a dynamic filter holds {len(rows)} rows", fix="report it")
        return rows

    def _candidates(self, before: pa.Table, after: pa.Table) -> Changes:
        """The held left rows whose result may differ."""
        if self._bound is None:
            return self._left.everything()
        ranges = [self._bound.range_of(right) for right in (before, after)]
        known = [one for one in ranges if one is not None]
        if not known:
            return Changes.empty(self._left.schema)
        if len(known) == 1:
            low, high = known[0]
        else:
            upwards = self._bound.comparison in (">", ">=")
            low, high = sorted(one[0] if upwards else one[1] for one in known)
        probe = pa.table({"one": [0]})
        found = self._left.between(probe, np.array([low]), np.array([high]), ())
        return found.changes.consolidated()

    def _result(self, left: Changes, right: pa.Table) -> Changes:
        """What ``left`` gives with the right row."""
        if len(left) == 0:
            return Changes.empty(self._output)
        holds: Mask = np.zeros(len(left), dtype=np.bool_)
        if len(right):
            holds = self._pairing.matching(left.rows, _repeated(right, len(left)))
        found = left.where(holds)
        if self._kind is JoinKind.SEMI:
            return Changes.with_deltas(found.rows.cast(self._output), found.deltas)
        parts = [Changes.empty(self._output)]
        if len(found):
            parts.append(self._pairing.together(found, _repeated(right, len(found))))
        if self._kind is JoinKind.LEFT:
            parts.append(self._pairing.left_padded(left.where(~holds)))
        return Changes.concat(parts)


def _repeated(one: pa.Table, count: int) -> pa.Table:
    return one.take(pa.array(np.zeros(count, dtype=np.int64)))
