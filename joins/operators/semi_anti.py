"""SEMI, ANTI and MARK joins of inputs that change: the left rows that match something, or nothing, or which do.

**Definition.** A left row matches a right row when their keys are equal (NULL equals NULL only for null-safe keys) and
the residual condition holds. SEMI gives each left row that matches one right row or more, as often as it stands; ANTI
each that matches none. So the two divide the left rows: a row whose key is NULL is ANTI's. The columns are those of
the left side. MARK gives both, with a column besides that is true in the rows of SEMI and false in those of ANTI. The
output is the difference that a batch makes.

**Method.** ANTI gives the change of the unmatched left rows, SEMI what the change of the left rows is besides. Without
a residual condition all rows of a key are unmatched, or none (``UnmatchedByKey``); with one, each row has a match count
(``MatchCounts``).

**State.** The left rows; of the right side, where nothing but its key is asked for, the keys with their counts; with a
residual condition the match count of each left row that has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dovetail.changelog.changes import Changes
from dovetail.changelog.rows import Mask
from dovetail.joins.dataflow.ports import JoinKind, Port, Predicate
from dovetail.joins.inputs.both_sides import BothSides
from dovetail.joins.inputs.renamed_rows import Names
from dovetail.joins.matching.match_counts import MatchCounts
from dovetail.joins.matching.row_assembler import RowAssembler
from dovetail.joins.matching.unmatched import UnmatchedByKey
from dovetail.joins.state.store import RunStore


@dataclass(frozen=True)
class MatchCondition:
    """What the join asks of each left row. ``kind``: SEMI, ANTI or MARK; ``mark``: the column that MARK adds."""

    kind: JoinKind
    mark: str
    null_safe: tuple[bool, ...]
    condition: Predicate | None


def marked(changes: Changes, mark: Mask | bool, name: str) -> Changes:
    """``changes`` with the column ``name``: for each row, or for all, whether it matches something."""
    marks = pa.array(np.broadcast_to(np.asarray(mark, dtype=np.bool_), len(changes)))
    return Changes.with_deltas(changes.rows.append_column(pa.field(name, pa.bool_()), marks), changes.deltas)


class SemiAntiOperator:
    """``on_batch([left rows, right rows]) -> changes`` of the left rows that leave; ``on_batch([rows])`` where both
    sides are one input.
    """

    def __init__(
        self, left: Port, right: Port, condition: MatchCondition, store: RunStore, name: str, right_as_left: Names = ()
    ) -> None:
        self._condition = condition
        only_keys = not right.ingest.compared and set(right.schema.names) == set(right.keys)
        self._sides = BothSides(left, right, right_as_left, condition.null_safe, store, name, counted=only_keys)
        self._by_key: UnmatchedByKey | None = None
        self._counts: MatchCounts | None = None
        sides = self._sides.left, self._sides.right
        if condition.condition is None:
            self._by_key = UnmatchedByKey(*sides)
        else:
            holds = RowAssembler(left.schema, right.schema, condition.condition).matching
            self._counts = MatchCounts(*sides, holds, store, f"{name}.pairs")
        self._output = pa.schema([field.with_nullable(True) for field in left.schema])

    @property
    def dangling(self) -> int:
        return self._sides.dangling

    def refused(self) -> tuple[pa.Table | None, ...]:
        return self._sides.refused()

    def on_batch(self, inputs: Sequence[pa.Table | None]) -> Changes:
        left, right = self._sides.normalize(inputs)
        unmatched = self._unmatched(left, right)
        if self._condition.kind is JoinKind.ANTI:
            return self._leaving(unmatched)
        matched = self._leaving(Changes.concat([left, unmatched.negated()]))
        if self._condition.kind is JoinKind.SEMI:
            return matched
        parts = [(self._leaving(unmatched), False), (matched, True)]
        return Changes.concat([marked(changes, mark, self._condition.mark) for changes, mark in parts]).consolidated()

    def _leaving(self, found: Changes) -> Changes:
        return Changes.with_deltas(found.rows.select(self._output.names).cast(self._output), found.deltas)

    def _unmatched(self, left: Changes, right: Changes) -> Changes:
        """The change of the left rows that match nothing; both sides are remembered."""
        if self._counts is not None:
            moved = self._counts.others_change(right)
            self._sides.right_changes(left.consolidated(), right.consolidated())
            own = self._counts.own_change(left)
            self._sides.left_changes(left.consolidated())
            return Changes.concat([moved, own])
        if self._by_key is None:
            return left
        self._by_key.before(left, right)
        self._sides.right_changes(left.consolidated(), right.consolidated())
        self._sides.left_changes(left.consolidated())
        return self._by_key.after()
