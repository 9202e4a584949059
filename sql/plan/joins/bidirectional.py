"""Both sides are kept, and both trigger: the output is at any moment the join of what the inputs hold.

Of the right side of a SEMI, ANTI or MARK join only what the join asks for is kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.plan.canonical_values import Form, members
from dovetail.sql.plan.joins.method import JoinInputs, counted, current
from dovetail.sql.plan.joins.symmetric import SymmetricJoinMethod


@dataclass(frozen=True)
class Bidirectional(SymmetricJoinMethod):
    operator: ClassVar[str] = "Bidirectional"

    @property
    def canonical(self) -> Form:
        return members(kind="bidirectional")

    def keeps_both(self, inputs: JoinInputs) -> bool:
        return True

    def state(self, kind: JoinKind, inputs: JoinInputs) -> str:
        left = f"left {current(inputs.left)}"
        if kind.is_existence:
            return f"{left}, right {counted(inputs.right)}"
        return f"{left}, right {current(inputs.right)}"
