"""The two sides of a symmetric join, which may be one input: a self join by one key keeps its rows once.

**Method.** The pairs are bilinear: ``d(L x R) = L x dR + dL x R'``. So a join asks the left side as it was before a
batch, and the right side as it is after it. Where both are one arrangement the changes are inserted between the two.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from dovetail.changelog.changes import Changes
from dovetail.joins.dataflow.ports import Port
from dovetail.joins.inputs.arrangement_view import ArrangementView
from dovetail.joins.inputs.change_normalizer import ChangeNormalizer
from dovetail.joins.inputs.renamed_rows import Names, RenamedRows, renamed
from dovetail.joins.state.store import RunStore


class BothSides:
    """``right_as_left``: of each column of the right side the one of the left side that it is; empty: the sides are two
    inputs. ``counted``: equal right rows of an input of its own are held as one.
    """

    def __init__(
        self,
        left: Port,
        right: Port,
        right_as_left: Names,
        null_safe: tuple[bool, ...],
        store: RunStore,
        name: str,
        *,
        counted: bool = False,
    ) -> None:
        self._names = right_as_left
        self._left = ChangeNormalizer.of(left, store, f"{name}.left", null_safe)
        self._right: ChangeNormalizer | None = None
        self.left: ArrangementView = self._left.arrangement
        self.right: ArrangementView
        if right_as_left:
            self.right = RenamedRows(self._left.arrangement, right_as_left)
        else:
            self._right = ChangeNormalizer.of(right, store, f"{name}.right", null_safe, counted=counted)
            self.right = self._right.arrangement

    @property
    def dangling(self) -> int:
        return self._left.dangling + (0 if self._right is None else self._right.dangling)

    def refused(self) -> tuple[pa.Table | None, ...]:
        """By input, the records that its budget has refused."""
        return tuple(side.refused() for side in (self._left, self._right) if side is not None)

    def normalize(self, inputs: Sequence[pa.Table | None]) -> tuple[Changes, Changes]:
        """The changes of both sides; nothing is remembered yet."""
        left = self._left.normalize(inputs[0])
        if self._right is None:
            return left, renamed(left, self._names)
        return left, self._right.normalize(inputs[1])

    def right_changes(self, left: Changes, right: Changes) -> None:
        """Remember what the right side needs to be as after the batch: the left one is asked no more as before it."""
        if self._right is None:
            self._left.store(left)
        else:
            self._right.store(right)

    def left_changes(self, left: Changes) -> None:
        """Remember the changes of the left side, after those of the right one."""
        if self._right is not None:
            self._left.store(left)
