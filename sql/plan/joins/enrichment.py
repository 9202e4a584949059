"""One-shot: each left row is joined once, when it comes, with the right rows held then.

Under ``FOR SYSTEM_TIME AS OF PROCTIME()`` without an equality with all of them, as far as the condition holds: a small
table, which every bucket has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dovetail.joins.dataflow.ports import JoinKind
from dovetail.sql.plan.canonical_values import Form, members
from dovetail.sql.plan.joins.alignment import AlignedJoinMethod
from dovetail.sql.plan.joins.method import JoinInputs


@dataclass(frozen=True)
class Enrichment(AlignedJoinMethod):
    everywhere: bool = False

    operator: ClassVar[str] = "Enrichment"
    answers_once: ClassVar[bool] = True

    @property
    def canonical(self) -> Form:
        return members(kind="enrichment", alignment=self.canonical_alignment, everywhere=self.everywhere)

    def state(self, kind: JoinKind, inputs: JoinInputs) -> str:
        kept = super().state(kind, inputs)
        return f"{kept}, in every bucket" if self.everywhere else kept
