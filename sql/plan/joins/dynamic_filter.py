"""The join with one row that changes, that of an aggregate without groups.

The right row goes to every bucket, so no equality is needed, and the left rows are cut by whatever tells them apart.
With an inequality only the rows between the old bound and the new one move, as long as nothing reads the right row
above the join: then it is SEMI (the rule ``prune``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dovetail.joins.dataflow.ports import JoinKind
from dovetail.joins.operators.dynamic_filter import MovingBound
from dovetail.sql.plan.canonical_values import Form, members
from dovetail.sql.plan.joins.method import JoinInputs, JoinMethod, Key, KeyedSides, current

__all__ = ["DynamicFilter", "MovingBound"]


@dataclass(frozen=True)
class DynamicFilter(JoinMethod):
    """``bound``: the inequality that it goes by, which is part of the residual condition too; None: there is none."""

    bound: MovingBound | None = None

    operator: ClassVar[str] = "DynamicFilter"

    @property
    def everywhere(self) -> bool:
        return True

    @property
    def columns_read(self) -> frozenset[str]:
        return frozenset() if self.bound is None else frozenset({self.bound.left, self.bound.right})

    @property
    def canonical(self) -> Form:
        found = self.bound
        bound = None if found is None else members(left=found.left, comparison=found.comparison, right=found.right)
        return members(kind="dynamic_filter", bound=bound)

    def updates(self, kind: JoinKind, left: bool, right: bool) -> bool:
        return left or right

    def unique_keys(self, sides: KeyedSides) -> list[Key]:
        """A left row meets one row at most."""
        return sides.left

    def state(self, kind: JoinKind, inputs: JoinInputs) -> str:
        order = f" by {self.bound.left}" if self.bound is not None and kind is JoinKind.SEMI else ""
        return f"left {current(inputs.left)}{order}, right one row in every bucket"
