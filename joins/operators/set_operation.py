"""INTERSECT and EXCEPT of two inputs: rows that are equal in all columns, by how often each input holds them.

**Definition.** A row that stands l times on the left and r times on the right stands in the output

    INTERSECT        once, if l > 0 and r > 0        INTERSECT ALL    min(l, r) times
    EXCEPT           once, if l > 0 and r = 0        EXCEPT ALL       max(l - r, 0) times

Rows are equal when all of their columns are: NULL equals NULL, NaN equals NaN, -0.0 equals 0.0. The output is the
difference that a batch makes.

**State.** Each row of either input once, with how often it is there; of records that are compared with those held
(upserts, changelogs) the rows one by one.

Source: ISO/IEC 9075-2, <query expression>, general rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dovetail.changelog.changes import Changes
from dovetail.changelog.rows import distinct
from dovetail.joins.dataflow.ports import Port, SetKind
from dovetail.joins.dataflow.specification import OperatorSpec
from dovetail.joins.inputs.change_normalizer import ChangeNormalizer
from dovetail.joins.state.store import RunStore

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SetOperationSpec(OperatorSpec):
    """``kind`` of the rows of two ports, which have the same columns; all of these are their keys."""

    kind: SetKind
    left: Port
    right: Port

    @property
    def ports(self) -> tuple[Port, ...]:
        return self.left, self.right

    def open(self, store: RunStore, name: str) -> SetOperationOperator:
        return SetOperationOperator(self, store, name)


class SetOperationOperator:
    """``on_batch([left rows, right rows]) -> changes``"""

    def __init__(self, spec: SetOperationSpec, store: RunStore, name: str) -> None:
        self._kind = spec.kind
        self._schema = pa.schema([field.with_nullable(True) for field in spec.left.schema])
        self._sides = [
            ChangeNormalizer.of(
                port, store, f"{name}.{side}", (True,) * len(port.keys), counted=not port.ingest.compared
            )
            for side, port in (("left", spec.left), ("right", spec.right))
        ]

    @property
    def dangling(self) -> int:
        return sum(side.dangling for side in self._sides)

    def on_batch(self, inputs: Sequence[pa.Table | None]) -> Changes:
        changes = [side.normalize(rows) for side, rows in zip(self._sides, inputs, strict=True)]
        names = self._schema.names
        touched = distinct(pa.concat_tables([one.rows.select(names).cast(self._schema) for one in changes]))
        before = self._times(touched)
        for side, come in zip(self._sides, changes, strict=True):
            side.store(come.consolidated())
        moved = Changes.with_deltas(touched, self._times(touched) - before)
        return moved.where(moved.deltas != 0)

    def _times(self, rows: pa.Table) -> Counts:
        """How often each of ``rows`` stands in the output."""
        left, right = (side.arrangement.counts(rows) for side in self._sides)
        if self._kind.distinct:
            # Of sets: a row that the left side holds once more than the right one is on both.
            left, right = np.sign(left), np.sign(right)
        common: Counts = np.minimum(left, right)
        return common if self._kind.intersects else left - common
