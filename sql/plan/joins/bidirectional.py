"""Both sides are kept, and both trigger: the output is at any moment the join of what the inputs hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from joins.dataflow.ports import JoinKind
from sql.plan.joins.method import JoinInputs, current
from sql.plan.joins.symmetric import SymmetricJoinMethod


@dataclass(frozen=True)
class Bidirectional(SymmetricJoinMethod):
    operator: ClassVar[str] = "Bidirectional"

    def state(self, kind: JoinKind, inputs: JoinInputs) -> str:
        return f"left {current(inputs.left)}, right {current(inputs.right)}"
