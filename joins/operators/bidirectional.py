"""The symmetric join: both sides are kept, and a change of either side changes the output.

**Definition.** Left and right rows match when their keys are equal (NULL equals NULL only for null-safe keys) and the
residual condition holds. INNER gives every matching pair; LEFT also each left row that matches nothing, with the right
columns padded; RIGHT is its mirror; FULL both. A padded row leaves with the first match and comes back when the last
one goes. SEMI, ANTI and MARK ask of each left row (``joins.operators.semi_anti``). The output is the difference this
makes, batch by batch.

**Method.** The pairs are bilinear: ``d(L x R) = L x dR + dL x R'`` with R' the right side after the batch. Padded rows
follow the number of matches per key (0 to n and n to 0) where there is no residual condition; with one, the padding of
the rows that may change is derived before and after, and the difference emitted. Pairs are made, and tested, in blocks
of a bounded number, so a key of many rows costs no more memory at once than what of it leaves.

**State.** The rows of both sides. Where the right side is the left one once more, a stream joined with itself by one
key, they are one input, taken in and kept once.

Source: McSherry et al., "Differential dataflow" (CIDR 2013); Gupta and Mumick, "Maintenance of Materialized Views"
(IEEE Data Engineering Bulletin, 1995).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from dovetail.changelog.changes import Changes
from dovetail.joins.dataflow.ports import JoinKind, Pad, Port, Predicate
from dovetail.joins.dataflow.specification import JoinSpec
from dovetail.joins.inputs.both_sides import BothSides
from dovetail.joins.inputs.renamed_rows import Names
from dovetail.joins.matching.row_assembler import RowAssembler
from dovetail.joins.matching.unmatched import Unmatched, mirrored, unmatched
from dovetail.joins.operators.semi_anti import MatchCondition, SemiAntiOperator
from dovetail.joins.state.store import RunStore


@dataclass(frozen=True)
class BidirectionalSpec(JoinSpec):
    """The symmetric join: both sides are kept and both trigger. Output: columns of left, then right;
    of SEMI and ANTI those of left, of MARK ``mark`` besides.

    null_safe       per key column: NULL equals NULL (IS NOT DISTINCT FROM); empty: none does
    condition       the residual condition, over the columns of left and right together
    right_as_left   the right side has the rows of the left one, under the same key, and no input of its own: of each of
                    its columns the one of the left side that it is; empty: it has one
    """

    kinds = tuple(JoinKind)

    null_safe: tuple[bool, ...] = ()
    condition: Predicate | None = None
    mark: str = "mark"
    right_as_left: Names = ()

    @property
    def ports(self) -> tuple[Port, ...]:
        return (self.left,) if self.right_as_left else (self.left, self.right)

    def open(self, store: RunStore, name: str) -> BidirectionalOperator | SemiAntiOperator:
        if self.kind.is_existence:
            null_safe = self.null_safe or (False,) * len(self.left.keys)
            condition = MatchCondition(self.kind, self.mark, null_safe, self.condition)
            return SemiAntiOperator(self.left, self.right, condition, store, name, self.right_as_left)
        return BidirectionalOperator(self, store, name)


class BidirectionalOperator:
    """``on_batch([left rows, right rows]) -> changes`` of the joined rows: left columns, then right columns.

    Where both sides are one input: ``on_batch([rows])``.
    """

    def __init__(self, spec: BidirectionalSpec, store: RunStore, name: str) -> None:
        null_safe = spec.null_safe or (False,) * len(spec.left.keys)
        self._sides = BothSides(spec.left, spec.right, spec.right_as_left, null_safe, store, name)
        self._pairing = RowAssembler(spec.left.schema, spec.right.schema, spec.condition, spec.pad is Pad.DEFAULT)
        left, right = self._sides.left, self._sides.right
        holds = self._pairing.matching if spec.condition else None
        self._left_unmatched: Unmatched | None = None
        self._right_unmatched: Unmatched | None = None
        if spec.kind in (JoinKind.LEFT, JoinKind.FULL):
            self._left_unmatched = unmatched(left, right, holds)
        if spec.kind in (JoinKind.RIGHT, JoinKind.FULL):
            self._right_unmatched = unmatched(right, left, mirrored(holds))

    @property
    def dangling(self) -> int:
        return self._sides.dangling

    def refused(self) -> tuple[pa.Table | None, ...]:
        return self._sides.refused()

    def on_batch(self, inputs: Sequence[pa.Table | None]) -> Changes:
        sides = self._sides
        left, right = sides.normalize(inputs)
        self._watch(left, right)
        found = sides.left.probed(right.table, sides.right.keys)
        parts = [self._pairing.of_right(right, block) for block in found]
        sides.right_changes(left, right)
        found = sides.right.probed(left.table, sides.left.keys)
        parts += [self._pairing.of_left(left, block) for block in found]
        sides.left_changes(left)
        parts.extend(self._padded())
        return Changes.concat(parts)

    def _watch(self, left: Changes, right: Changes) -> None:
        if self._left_unmatched:
            self._left_unmatched.before(left, right)
        if self._right_unmatched:
            self._right_unmatched.before(right, left)

    def _padded(self) -> list[Changes]:
        parts = []
        if self._left_unmatched:
            parts.append(self._pairing.left_padded(self._left_unmatched.after()))
        if self._right_unmatched:
            parts.append(self._pairing.right_padded(self._right_unmatched.after()))
        return parts
