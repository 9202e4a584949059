"""The LATEST join: one-shot, with the right row of the key that was inserted last.

**Definition.** A left row is joined with the right row of its key that was inserted last, among those that still stand;
NULL keys match nothing. FULL answers the rows of both sides: each row that is inserted, on either side, with the last
row of the other side, padded where there is none. Of one batch the right rows come first, then the left ones; so the
right rows meet the last left row of the batches before. The rest in ``joins.operators.one_shot``. A left row that is
held for alignment is inserted when it is let go.

**State.** The last right row of each key, FULL: of each side; of a side that can be taken back its current rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from dovetail.changelog.changes import Changes
from dovetail.joins.dataflow.ports import JoinKind
from dovetail.joins.matching.last_rows import LastRows
from dovetail.joins.operators.one_shot import OneShotOperator, OneShotSpec
from dovetail.joins.state.store import RunStore


@dataclass(frozen=True)
class LatestSpec(OneShotSpec):
    """Each left row meets, once, the right row of its key that was inserted last.

    FULL answers the rows of either side with the last row of the other: of a batch first the right rows, with the left
    rows of the batches before, then the left ones.
    """

    kinds = (JoinKind.INNER, JoinKind.LEFT, JoinKind.FULL)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "right", replace(self.right, tie_break_by_arrival=True))
        if self.kind is JoinKind.FULL:
            object.__setattr__(self, "left", replace(self.left, tie_break_by_arrival=True))

    def open(self, store: RunStore, name: str) -> LatestOperator:
        return LatestOperator(self, store, name)


class LatestOperator(OneShotOperator):
    """``on_batch([left rows, right rows]) -> changes``: insertions only, left columns, then right columns."""

    def __init__(self, spec: LatestSpec, store: RunStore, name: str) -> None:
        super().__init__(spec, store, name)
        self._rights = LastRows(spec.right, store, f"{name}.right")
        self._lefts = LastRows(spec.left, store, f"{name}.left") if spec.kind is JoinKind.FULL else None
        self._right_keys = spec.right.keys

    @property
    def dangling(self) -> int:
        return self._rights.dangling + (self._lefts.dangling if self._lefts else 0)

    def _take_in(self, rows: pa.Table) -> Changes:
        inserted = self._rights.take_in(rows)
        if self._lefts is None:
            return Changes.empty(self._output)
        found = self._lefts.under(inserted.table, self._right_keys)
        unmatched = inserted.where(found.unmatched(len(inserted)))
        return Changes.concat([self._pairing.of_right(inserted, found), self._pairing.right_padded(unmatched)])

    def _answered(self, left: Changes) -> Changes:
        if self._lefts is not None:
            left = self._lefts.take_in(left.table)
        return self._joined(left, self._rights.under(left.table, self._left.keys))
