"""Joined rows from pairs: left columns, then right columns, with the product of their counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from dovetail.changelog.changes import Changes, products
from dovetail.changelog.rows import Mask, missing_side, side_by_side
from dovetail.joins.dataflow.ports import Predicate
from dovetail.joins.state.arrangement import Matches


@dataclass(frozen=True)
class RowAssembler:
    """How rows of ``left`` and ``right`` form a row of the output; ``condition`` tests it, NULL counting as false.

    default_pads   a missing side holds the default of each type, not NULL
    """

    left: pa.Schema
    right: pa.Schema
    condition: Predicate | None = None
    default_pads: bool = False

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([field.with_nullable(True) for field in [*self.left, *self.right]])

    def of_left(self, left: Changes, matches: Matches) -> Changes:
        """``left`` joined with the right rows that its rows found."""
        return self.joined(left.take(matches.probe).table, matches.rows)

    def of_right(self, right: Changes, matches: Matches) -> Changes:
        """``right`` joined with the left rows that its rows found."""
        return self.joined(matches.rows, right.take(matches.probe).table)

    def joined(self, left: pa.Table, right: pa.Table) -> Changes:
        """Row i of ``left`` with row i of ``right`` (both with ``delta``), where the condition holds."""
        rows = self._together(left.select(self.left.names), right.select(self.right.names))
        changes = Changes.with_deltas(rows, products(Changes(left).deltas, Changes(right).deltas))
        if self.condition is None or len(changes) == 0:
            return changes
        return changes.where(self.condition(rows))

    def together(self, left: Changes, right: pa.Table) -> Changes:
        """Row i of ``left`` with row i of ``right``, as often as it stands on the left; the condition has held."""
        rows = self._together(left.table.select(self.left.names), right.select(self.right.names))
        return Changes.with_deltas(rows, left.deltas)

    def matching(self, left: pa.Table, right: pa.Table) -> Mask:
        """Which rows i of ``left`` and ``right`` satisfy the condition."""
        if self.condition is None or left.num_rows == 0:
            return np.ones(left.num_rows, dtype=np.bool_)
        return self.condition(self._together(left.select(self.left.names), right.select(self.right.names)))

    def left_padded(self, left: Changes) -> Changes:
        """``left`` without a match: its right columns are padded."""
        rows = left.table.select(self.left.names)
        padded = self._together(rows, missing_side(self.right, len(left), self.default_pads))
        return Changes.with_deltas(padded, left.deltas)

    def right_padded(self, right: Changes) -> Changes:
        rows = right.table.select(self.right.names)
        padded = self._together(missing_side(self.left, len(right), self.default_pads), rows)
        return Changes.with_deltas(padded, right.deltas)

    def _together(self, left: pa.Table, right: pa.Table) -> pa.Table:
        return side_by_side(left, right).cast(self.schema)
