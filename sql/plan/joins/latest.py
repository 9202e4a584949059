"""One-shot: each left row meets the right row of its key that was inserted last. FULL answers either side so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.plan.canonical_values import Form, members
from dovetail.sql.plan.joins.alignment import AlignedJoinMethod
from dovetail.sql.plan.joins.method import JoinInput, JoinInputs


@dataclass(frozen=True)
class Latest(AlignedJoinMethod):
    operator: ClassVar[str] = "Latest"
    called: ClassVar[str] = "a LATEST"
    answers_once: ClassVar[bool] = True
    takes_one: ClassVar[bool] = True
    null_safe: ClassVar[bool] = False
    goes_by_arrival: ClassVar[bool] = True

    @property
    def canonical(self) -> Form:
        return members(kind="latest", alignment=self.canonical_alignment)

    def updates(self, kind: JoinKind, left: bool, right: bool) -> bool:
        return False

    def state(self, kind: JoinKind, inputs: JoinInputs) -> str:
        right = _last("right", inputs.right)
        return f"{_last('left', inputs.left)}, {right}" if kind == JoinKind.FULL else right


def _last(name: str, side: JoinInput) -> str:
    return f"{name} the current rows" if side.updates else f"the last {name} row of each join key, forever"
