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
        bound = None
        if found is not None:
            rises = {"rises": True} if found.rises else {}
            bound = members(left=found.left, comparison=found.comparison, right=found.right, **rises)
        return members(kind="dynamic_filter", bound=bound)

    def updates(self, kind: JoinKind, left: bool, right: bool) -> bool:
        """Rows that wait for a bound that rises come, and stay."""
        return left or (right and not (self._passes(kind) and self._lets_in))

    def empties(self, kind: JoinKind) -> bool:
        return self._passes(kind) and not self._lets_in

    def _passes(self, kind: JoinKind) -> bool:
        """Whether rows are let go of once the bound has passed them."""
        return kind is JoinKind.SEMI and self.bound is not None and self.bound.rises

    @property
    def _lets_in(self) -> bool:
        return self.bound is not None and self.bound.comparison in ("<", "<=")

    def unique_keys(self, sides: KeyedSides) -> list[Key]:
        """A left row meets one row at most."""
        return sides.left

    def state(self, kind: JoinKind, inputs: JoinInputs) -> str:
        if self._passes(kind) and self.bound is not None and (inputs.left.grows or not inputs.left.updates):
            return f"left rows until {self.bound.right} has passed {self.bound.left}, right one row in every bucket"
        order = f" by {self.bound.left}" if self.bound is not None and kind is JoinKind.SEMI else ""
        return f"left {current(inputs.left)}{order}, right one row in every bucket"
